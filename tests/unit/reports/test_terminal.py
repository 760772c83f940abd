"""The block that a person reads for one case."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest

from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.published import Beside, Published
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.verdict import RECENT, Verdict, Word
from pytest_llmperf.reports import terminal

CASE = CaseResult(
    suite="chat",
    case="vllm/random-4000-200",
    nodeid="suites/chat/chat.llmperf.yaml::vllm/random-4000-200",
    arm="vllm",
    hardware="8x NVIDIA H200",
    metrics={"output_throughput": 718.24, "mean_ttft_ms": 31.26, "mean_e2el_ms": 100412.0, "acceptance_length": 2.61},
)

THROUGHPUT = Verdict(
    metric="output_throughput",
    word=Word.REGRESSED,
    margin=0.03,
    reference=753.72,
    measured=718.24,
    change=-0.0471,
    interval=(-0.0532, -0.0409),
    p_fail=0.00002,
    p_pass=0.98,
    smallest_visible=0.009,
    runs=3,
    reference_runs=24,
    reference_sessions=12,
    confirmation=-0.0441,
)
LATENCY = Verdict(
    metric="mean_e2el_ms",
    word=Word.PASSED,
    margin=0.6,
    reference=100012.0,
    measured=100412.0,
    change=0.004,
    interval=(-0.01, 0.02),
    p_fail=0.3,
    p_pass=0.0123,
    smallest_visible=0.02,
    runs=4,
    reference_runs=4,
    reference_sessions=1,
    against="healthy",
)
ACCEPTANCE = Verdict(
    metric="acceptance_length",
    word=Word.REGRESSED,
    margin=0.03,
    reference=3.969,
    measured=2.61,
    change=-1.359,
    interval=(-1.359, -1.359),
    smallest_visible=0.003,
    runs=1,
    reference_runs=3,
    reference_sessions=1,
)


def with_verdicts(*verdicts: Verdict) -> CaseResult:
    return replace(CASE, verdicts=verdicts)


RESULTS = {
    "regressed": replace(
        with_verdicts(THROUGHPUT, LATENCY, ACCEPTANCE),
        changed={"engine_version": ("0.11.0", "0.11.1"), "driver": ("570.86", "580.159")},
    ),
    "passed": with_verdicts(LATENCY),
    "variant": replace(
        with_verdicts(ACCEPTANCE), subject="arm damaged", variant=True, arguments="--llmperf-engine=damaged"
    ),
    "not_comparable": with_verdicts(
        Verdict(
            metric="output_throughput", word=Word.NO_BASELINE, margin=0.05, measured=1.0, runs=1, cause="not comparable"
        )
    ),
    "inconclusive": with_verdicts(
        Verdict(
            metric="mean_ttft_ms",
            word=Word.INCONCLUSIVE,
            margin=0.1,
            reference=29.0,
            measured=31.26,
            change=0.078,
            interval=(-0.05, 0.22),
            p_fail=0.2,
            p_pass=0.3,
            smallest_visible=0.24,
            runs=5,
            reference_runs=3,
            reference_sessions=3,
            cause="underpowered: smallest visible change 24 % > margin 10 %",
        )
    ),
    "no_baseline": with_verdicts(
        Verdict(
            metric="output_throughput",
            word=Word.NO_BASELINE,
            margin=0.05,
            measured=718.24,
            runs=1,
            cause="there is no file baselines/8x-nvidia-h200/chat/vllm/random-4000-200.yaml",
        )
    ),
    "recent": with_verdicts(
        replace(THROUGHPUT, against=RECENT, reference_sessions=20, calibrated=True),
        replace(LATENCY, against="baseline", reference_sessions=3, calibrated=False),
    ),
    "promise": with_verdicts(replace(LATENCY, metric="output_throughput", margin=0.05, at_least=1.1, against="vllm")),
    "quarantined": replace(
        with_verdicts(replace(THROUGHPUT, quarantine="quarantined until 2026-12-24 by ann: a fan of node-07")),
        failures=Verdict(
            metric="failed_requests",
            word=Word.INCONCLUSIVE,
            margin=0.01,
            reference=0.001,
            measured=0.004,
            cause="too few requests",
        ),
    ),
    "quarantined_crash": replace(
        CASE, failure="the engine's process ended (cause: crash)", quarantine="quarantined until 2026-12-24 by ann: #17"
    ),
    "published": replace(
        with_verdicts(LATENCY),
        account="speculation: acceptance length 1.7 >= 1.43, where it breaks even",
        beside=(
            Beside(
                published=Published(
                    metric="output_throughput",
                    value=753.7,
                    source="the report, table 3",
                    conditions="8x H200, vLLM 0.11.0",
                    definition="output",
                    expires=date(2027, 6, 1),
                ),
                measured=718.24,
                change=-0.047,
                interval=(-0.06, -0.03),
                runs=3,
                expired=False,
            ),
            Beside(
                published=Published(
                    metric="mean_e2el_ms", value=95000.0, source="the report, table 3", expires=date(2026, 1, 1)
                ),
                measured=100412.0,
                change=0.057,
                interval=(0.03, 0.08),
                runs=3,
                expired=True,
            ),
        ),
    ),
    "failed": replace(CASE, failure="the engine's process ended (cause: crash)\n\n  | boom"),
    "skipped": replace(CASE, skipped="needs 8x H200; this machine is 2x AMD EPYC"),
    "invalid": replace(
        with_verdicts(
            Verdict(metric="mean_ttft_ms", word=Word.INVALID, margin=0.1, measured=31.26, runs=3, cause="client_lag")
        ),
        findings=(
            Finding(
                check="host_idle",
                status=Status.FAIL,
                policy="warn",
                value="load average 7.00 on 2 cores",
                expected="at most 1.0",
                remedy="find what else is running",
            ),
            Finding(check="engine_ready", status=Status.PASS, policy="require", value="after 0.2 s"),
        ),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_block_of_a_case(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"terminal_{name}.txt", "\n".join(terminal.render(RESULTS[name])) + "\n")


@pytest.mark.parametrize(("name", "step"), [("regressed", "accept"), ("no_baseline", "record one")])
def test_what_a_revision_holds_is_recorded_in_the_work_tree_and_counts_later(name: str, step: str) -> None:
    arguments = "'--llmperf-set=stall_timeout=60 s' --llmperf-baselines=git:origin/main"
    lines = terminal.render(replace(RESULTS[name], arguments=arguments))
    (line,) = [line.strip() for line in lines if line.strip().startswith(f"{step} (")]
    assert line.startswith(f"{step} (counts once it is in origin/main): pytest '{CASE.nodeid}' '--llmperf-set=stall")
    assert "git:" not in line
    assert name == "no_baseline" or any(line.strip().endswith("git:origin/main") for line in lines), "again"


def test_an_item_says_its_verdicts_alone() -> None:
    lines = terminal.render_item(RESULTS["regressed"])
    assert any("confirmed by a fresh start" in line for line in lines)
    assert not [line for line in lines if line.strip().startswith(("also ", "accept:", "again:", "changed:"))]


@pytest.mark.parametrize("name", RESULTS)
def test_result_survives_the_way_between_processes(name: str) -> None:
    assert CaseResult.from_dict(json.loads(json.dumps(RESULTS[name].to_dict()))) == RESULTS[name]
