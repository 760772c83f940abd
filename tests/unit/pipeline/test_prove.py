"""Which loss proves a gate, and what counts as a proof."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.errors import UsageError
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.injection import Injection
from pytest_llmperf.model.proof import State
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.pipeline.campaign import Campaign
from pytest_llmperf.pipeline.prove import injection_for, prove
from tests.unit.pipeline.fakes import case, gate


@pytest.mark.parametrize(
    ("metric", "margin", "wanted"),
    [
        ("output_throughput", 0.05, Injection("throughput", 1 - 0.95**2)),
        ("request_goodput", 0.10, Injection("throughput", 1 - 0.9**2)),
        ("mean_ttft_ms", 0.10, Injection("ttft", 1.1**2 - 1)),
        ("p99_ttft_from_schedule_ms", 0.10, Injection("ttft", 1.1**2 - 1)),
        ("mean_tpot_ms", 0.05, Injection("tpot", 1.05**2 - 1)),
        ("p99_itl_ms", 0.05, Injection("tpot", 1.05**2 - 1)),
        ("median_e2el_ms", 0.05, Injection("e2el", 1.05**2 - 1)),
        ("tok_s_per_user", 0.05, Injection("e2el", 1 / 0.95**2 - 1)),
        ("decode_tok_s_per_user", 0.05, Injection("tpot", 1 / 0.95**2 - 1)),
        ("acceptance_length", 0.03, Injection("acceptance", 0.06)),
    ],
)
def test_the_loss_is_twice_the_margin_in_log(metric: str, margin: float, wanted: Injection) -> None:
    found = injection_for(gate(metric, margin))
    assert found is not None
    assert found.kind == wanted.kind
    assert found.share == pytest.approx(wanted.share)


@pytest.mark.parametrize("metric", ["acceptance_rate", "slo_attainment", "max_concurrent_requests", "mean_concurrency"])
def test_what_nothing_lessens_is_said(metric: str) -> None:
    assert injection_for(gate(metric, 0.02)) is None


@given(st.sampled_from(sorted(METRICS)), st.floats(0.001, 0.9))
def test_every_loss_reaches_twice_the_margin(metric: str, margin: float) -> None:
    judged = gate(metric, margin)
    found = injection_for(judged)
    if found is None or found.kind == "acceptance":
        return
    pace = 1 - found.share if found.kind == "throughput" else 1 / (1 + found.share)
    assert math.log(pace) == pytest.approx(-2 * judged.delta)


def proofs_of(verdict: Verdict | None, tmp_path: Path, **result: Any) -> Any:
    """Of a campaign that finds this verdict for whatever it measures."""
    seen: list[Injection | None] = []

    class Scripted:
        inject: Injection | None = None

        def prepare(self, each: Case, _nodeid: str, *, live: bool) -> Any:
            return SimpleNamespace(**{"failure": "", "skipped": "", "verdicts": (), **result})

        def measure(self, each: Case, prepared: Any, _recorded: Any) -> Any:
            seen.append(self.inject)
            assert len(each.gates) == 1
            return SimpleNamespace(failure="", skipped="", verdicts=() if verdict is None else (verdict,))

        def keep_for(self, _cases: Any) -> None:
            pass

    campaign = Scripted()
    found = list(prove(cast("Campaign", campaign), [case(tmp_path, gate("mean_ttft_ms"), gate("output_throughput"))]))
    assert campaign.inject is None
    return found, seen


@pytest.mark.parametrize(
    ("word", "state"),
    [
        (Word.REGRESSED, State.ALIVE),
        (Word.PASSED, State.DEAD),
        (Word.IMPROVED, State.DEAD),
        (Word.INCONCLUSIVE, State.DEAD),
        (Word.INVALID, State.UNPROVEN),
        (Word.NO_BASELINE, State.UNPROVEN),
    ],
)
def test_only_a_regression_is_a_proof(word: Word, state: State, tmp_path: Path) -> None:
    found, seen = proofs_of(Verdict(metric="m", word=word, margin=0.05, cause="because"), tmp_path)
    assert [proof.state for proof in found] == [state, state]
    assert [injection.kind for injection in seen] == ["ttft", "throughput"]
    assert all(("because" in proof.why) == (state is not State.ALIVE) for proof in found)


@pytest.mark.parametrize("result", [{"failure": "it died"}, {"skipped": "it died"}])
def test_what_cannot_be_measured_is_unproven(result: dict[str, str], tmp_path: Path) -> None:
    found, seen = proofs_of(None, tmp_path, **result)
    assert [proof.state for proof in found] == [State.UNPROVEN] * 2
    assert seen == []
    assert {proof.why for proof in found} == {"it died"}


def test_an_engine_that_cannot_be_harmed_leaves_its_gate_unproven(tmp_path: Path) -> None:
    class Unharmed:
        inject: Injection | None = None

        def prepare(self, *_: Any, live: bool) -> Any:
            raise UsageError("it cannot lose so much")

        def keep_for(self, _cases: Any) -> None:
            pass

    found = list(prove(cast("Campaign", Unharmed()), [case(tmp_path, gate("acceptance_length", 0.03))]))
    assert [(proof.state, proof.why) for proof in found] == [(State.UNPROVEN, "it cannot lose so much")]
