"""Which loss proves a gate, and what counts as a proof."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.errors import UsageError
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.injection import Injection
from pytest_llmperf.model.proof import Proof, State
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.pipeline.campaign import Campaign
from pytest_llmperf.pipeline.prove import injection_for, prove
from pytest_llmperf.reports.proofs import render
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


@given(st.sampled_from(["output_throughput", "mean_e2el_ms"]), st.floats(0.001, 0.3), st.floats(0, 0.5))
def test_what_is_ahead_is_lost_as_well(metric: str, margin: float, ahead: float) -> None:
    judged = gate(metric, margin)
    found = injection_for(judged, ahead)
    assert found is not None
    pace = 1 - found.share if found.kind == "throughput" else 1 / (1 + found.share)
    assert math.log(pace) == pytest.approx(-2 * judged.delta - ahead)


Answer = Callable[[Injection | None], Mapping[str, Any]]
"""The fields of a case result by what is injected."""


@dataclass
class Scripted:
    """A campaign that finds what it is told to."""

    answer: Answer
    prepared: Mapping[str, Any] = field(default_factory=dict)
    margin: float | None = None
    inject: Injection | None = None
    seen: list[Injection | None] = field(default_factory=list)

    def calibrated(self, each: Case) -> Case:
        if self.margin is None:
            return each
        return replace(each, gates=tuple(replace(gate, margin=self.margin) for gate in each.gates))

    def prepare(self, each: Case, nodeid: str, *, live: bool) -> CaseResult:
        assert live
        empty = CaseResult(suite=each.suite.name, case=each.id, nodeid=nodeid, arm=each.arm.name, hardware="box")
        return replace(empty, **self.prepared)

    def measure(self, each: Case, prepared: CaseResult, _recorded: Any) -> CaseResult:
        assert len(each.gates) == 1
        self.seen.append(self.inject)
        return replace(prepared, **self.answer(self.inject))

    def keep_for(self, _cases: Any) -> None:
        """Nothing runs."""

    def proofs(self, *cases: Case) -> list[Proof]:
        found = list(prove(cast("Campaign", self), cases))
        assert self.inject is None
        return found


def said(metric: str, word: Word, **fields: Any) -> Mapping[str, Any]:
    return {"verdicts": (Verdict(metric=metric, word=word, margin=0.05, **fields),)}


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
    campaign = Scripted(lambda _: said("mean_ttft_ms", word, cause="because"))
    (proof,) = campaign.proofs(case(tmp_path, gate("mean_ttft_ms")))
    assert proof.state is state
    assert [injection and injection.kind for injection in campaign.seen] == ["ttft"]
    assert ("because" in proof.why) == (state is not State.ALIVE)


def test_a_red_that_no_fresh_start_could_confirm_is_red_for_whoever_waits_for_it(tmp_path: Path) -> None:
    campaign = Scripted(lambda _: said("mean_ttft_ms", Word.REGRESSED, cause="unconfirmed: not ours to restart"))
    (proof,) = campaign.proofs(case(tmp_path, gate("mean_ttft_ms")))
    assert (proof.state, proof.why) == (State.ALIVE, "")


def test_every_gate_has_a_proof_of_its_own(tmp_path: Path) -> None:
    campaign = Scripted(lambda _: said("output_throughput", Word.REGRESSED))
    found = campaign.proofs(case(tmp_path, gate("mean_ttft_ms"), gate("output_throughput")))
    assert [(proof.metric, proof.state) for proof in found] == [
        ("mean_ttft_ms", State.UNPROVEN),  # its verdict is not there
        ("output_throughput", State.ALIVE),
    ]


@pytest.mark.parametrize("result", [{"failure": "it died"}, {"skipped": "it died"}])
def test_what_cannot_be_measured_is_unproven(result: dict[str, str], tmp_path: Path) -> None:
    campaign = Scripted(lambda _: {}, prepared=result)
    found = campaign.proofs(case(tmp_path, gate("mean_ttft_ms"), gate("output_throughput")))
    assert [(proof.state, proof.why) for proof in found] == [(State.UNPROVEN, "it died")] * 2
    assert campaign.seen == []


def test_an_engine_that_cannot_be_harmed_leaves_its_gate_unproven(tmp_path: Path) -> None:
    def refused(_: Injection | None) -> Mapping[str, Any]:
        raise UsageError("it cannot lose so much")

    (proof,) = Scripted(refused).proofs(case(tmp_path, gate("acceptance_length", 0.03)))
    assert (proof.state, proof.why) == (State.UNPROVEN, "it cannot lose so much")


@pytest.mark.parametrize(
    ("metric", "fields", "now", "wanted"),
    [
        # 1.3 times as fast, where 1.1 is promised: 1.1 / 1.3 of it, less twice the margin
        ("output_throughput", {"at_least": 1.1}, 0.3, Injection("throughput", 1 - 1.1 / 1.3 * 0.95**2)),
        ("mean_e2el_ms", {"at_least": 1.1}, 1 / 1.3 - 1, Injection("e2el", 1.3 / 1.1 * 1.05**2 - 1)),
        # worse than promised already: twice the margin is enough
        ("output_throughput", {"at_least": 1.1}, 0.05, Injection("throughput", 1 - 0.95**2)),
        # no promise, but another arm, and it is better than that
        ("output_throughput", {}, 0.3, Injection("throughput", 1 - 0.95**2 / 1.3)),
        ("acceptance_length", {}, 0.2, Injection("acceptance", 0.3)),
    ],
)
def test_a_gate_between_two_arms_loses_what_it_is_ahead_too(
    metric: str, fields: dict[str, Any], now: float, wanted: Injection, tmp_path: Path
) -> None:
    def answer(injection: Injection | None) -> Mapping[str, Any]:
        word = Word.PASSED if injection is None else Word.REGRESSED
        return said(metric, word, change=now if injection is None else -0.1)

    campaign = Scripted(answer)
    (proof,) = campaign.proofs(case(tmp_path, gate(metric, reference="old", **fields)))
    assert proof.state is State.ALIVE
    first, second = campaign.seen
    assert first is None
    assert second is not None
    assert second.kind == wanted.kind
    assert second.share == pytest.approx(wanted.share)


def test_an_arm_beside_itself_is_not_ahead(tmp_path: Path) -> None:
    campaign = Scripted(lambda _: said("output_throughput", Word.REGRESSED))
    campaign.proofs(case(tmp_path, gate("output_throughput", reference="new")))
    assert [injection and injection.kind for injection in campaign.seen] == ["throughput"]


def test_without_a_comparison_of_today_a_gate_between_arms_is_unproven(tmp_path: Path) -> None:
    campaign = Scripted(lambda _: said("output_throughput", Word.INVALID, cause="a busy host"))
    (proof,) = campaign.proofs(case(tmp_path, gate("output_throughput", reference="old", at_least=1.1)))
    assert (proof.state, proof.injection) == (State.UNPROVEN, None)
    assert proof.why == "how it is judged without a loss is not known: INVALID: a busy host"


def test_the_margin_that_a_calibration_gives_is_asked_for(tmp_path: Path) -> None:
    campaign = Scripted(lambda _: said("mean_ttft_ms", Word.REGRESSED), margin=0.2)
    (proof,) = campaign.proofs(case(tmp_path, gate("mean_ttft_ms", 0.05, auto=True)))
    assert proof.state is State.ALIVE
    (injection,) = campaign.seen
    assert injection is not None
    assert injection.share == pytest.approx(1.2**2 - 1)


@pytest.mark.parametrize(
    ("result", "state"),
    [
        ({"failure": "4 of 4 requests failed", "runs": ("a run",)}, State.ALIVE),
        ({"failure": "it did not start"}, State.UNPROVEN),
        ({"failures": Verdict(metric="failed_requests", word=Word.INCONCLUSIVE, margin=0.01)}, State.DEAD),
        (said("mean_ttft_ms", Word.PASSED), State.UNPROVEN),
    ],
)
def test_the_gate_on_failed_requests_is_proven_by_failing_all(
    result: dict[str, Any], state: State, tmp_path: Path
) -> None:
    judged = case(tmp_path, gate("mean_ttft_ms"))
    judged = replace(judged, suite=replace(judged.suite, failures=FailureGate()))
    campaign = Scripted(
        lambda injection: result if injection == Injection("error") else said("mean_ttft_ms", Word.REGRESSED)
    )
    found = campaign.proofs(judged)
    assert [(proof.metric, proof.state) for proof in found] == [
        ("mean_ttft_ms", State.ALIVE),
        ("failed_requests", state),
    ]
    assert (found[1].why == "") == (state is State.ALIVE)


@pytest.mark.parametrize("kind", ["natural", "synthetic"])
def test_a_loss_by_synthetic_counts_is_labelled(kind: str, tmp_path: Path) -> None:
    answer = {**said("acceptance_length", Word.REGRESSED, change=-0.1), "environment": {"acceptance": kind}}
    (proof,) = Scripted(lambda _: answer).proofs(case(tmp_path, gate("acceptance_length", 0.03)))
    (line,) = render(proof)
    assert line.startswith("alive     new/chat  acceptance_length   acceptance=-0.06   measured -0.100")
    assert ("(synthetic counts, judged as natural ones)" in line) == (kind == "synthetic")


def test_counts_that_play_no_part_are_not_labelled(tmp_path: Path) -> None:
    answer = {**said("mean_ttft_ms", Word.REGRESSED, change=0.1), "environment": {"acceptance": "synthetic"}}
    (proof,) = Scripted(lambda _: answer).proofs(case(tmp_path, gate("mean_ttft_ms")))
    assert "synthetic" not in "".join(render(proof))
