"""Accepting values as a baseline: what is kept, and what forbids it."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date

import pytest

from pytest_llmperf.baseline import Baseline, Mode, accept, may_write
from pytest_llmperf.checks.comparability import refusals
from pytest_llmperf.errors import BaselineError
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.result import CaseResult
from tests.unit.baseline.examples import EXAMPLE, FACTS, RESULT, runs

GOOD = runs(output_throughput=[753.7123456, 752.9, 754.8, 754.1], mean_e2el_ms=[95712.3456, 95833, 95590, 95644])
TODAY = date(2026, 11, 30)


def accepted(
    result: CaseResult = RESULT, measurement: Measurement = GOOD, why: str = "first", metrics: list[str] | None = None
) -> Baseline:
    return accept(result, measurement, why=why, on=TODAY, commit="4e0a037", metrics=metrics)


def test_runs_are_grouped_by_session_in_order_of_time_and_rounded() -> None:
    baseline = accepted()
    assert baseline.sessions == ("a", "b")
    assert baseline.metrics == {
        "mean_e2el_ms": ((95712.3, 95833.0), (95590.0, 95644.0)),
        "output_throughput": ((753.712, 752.9), (754.8, 754.1)),
    }
    assert (baseline.case, baseline.workload) == (RESULT.case, FACTS["workload"])
    assert (baseline.accepted.on, baseline.accepted.commit, baseline.accepted.why) == (TODAY, "4e0a037", "first")


def test_facts_go_where_they_are_compared_and_the_rest_is_left_out() -> None:
    baseline = accepted()
    assert baseline.refuse_unless == EXAMPLE.refuse_unless
    assert baseline.environment == EXAMPLE.environment
    assert baseline.facts == {**EXAMPLE.refuse_unless, "workload": FACTS["workload"]}


def test_what_the_machine_was_like_is_kept_and_compared() -> None:
    facts = {**FACTS, "machine.vboost": "4", "machine.gpu_part": "692"}
    baseline = accepted(result=replace(RESULT, environment=facts))
    assert baseline.machine == {"vboost": "4", "gpu_part": "692"}
    assert refusals(baseline.facts, facts) == []
    assert refusals(baseline.facts, {**facts, "machine.vboost": "0"}) == ["vboost: baseline 4, here 0"]


def test_only_the_metrics_asked_for_are_kept() -> None:
    assert list(accepted(metrics=["mean_e2el_ms"]).metrics) == ["mean_e2el_ms"]


def test_a_reason_is_one_line() -> None:
    assert accepted(why=" release\n 1.4 ").accepted.why == "release 1.4"


def doubtful(metric: str) -> Measurement:
    return replace(GOOD, invalid={metric: "client_lag: late"})


@pytest.mark.parametrize(
    ("result", "measurement", "why", "message"),
    [
        (RESULT, GOOD, " ", "a baseline needs a reason; give --llmperf-why"),
        (replace(RESULT, failure="engine died\nlog"), GOOD, "x", "a failed case cannot become .*: engine died$"),
        (RESULT, doubtful("mean_e2el_ms"), "x", "an invalid run cannot become a baseline: client_lag: late$"),
        (replace(RESULT, environment={**FACTS, "weights": ""}), GOOD, "x", "the runs do not say weights"),
        (RESULT, Measurement({}), "x", "there is no run to accept"),
        (RESULT, runs(mean_tpot_ms=[1.0] * 4, mean_e2el_ms=[1.0] * 3), "x", "mean_e2el_ms has no value in 1 of 4"),
        (RESULT, runs(mean_e2el_ms=[1.0, 0.0]), "x", "run 1 of session a: mean_e2el_ms = 0.0 cannot be a"),
        (RESULT, runs(acceptance_length=[math.nan]), "x", "= nan cannot be a baseline; it must be finite"),
        (RESULT, runs(tokens_per_calorie=[1.0]), "x", "tokens_per_calorie is not in the metric table"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_baseline(result: CaseResult, measurement: Measurement, why: str, message: str) -> None:
    with pytest.raises(BaselineError, match=message):
        accepted(result, measurement, why)


def test_a_finding_that_concerns_no_kept_metric_forbids_nothing() -> None:
    accepted(measurement=doubtful("p99_ttft_ms"))


def test_a_metric_that_was_asked_for_and_never_measured_is_missing() -> None:
    with pytest.raises(BaselineError, match="p99_ttft_ms has no value in 4 of 4 runs"):
        accepted(metrics=["p99_ttft_ms"])


@pytest.mark.parametrize(
    ("mode", "where_none", "where_one"), [("none", False, False), ("missing", True, False), ("all", True, True)]
)
def test_what_may_be_written(mode: Mode, where_none: bool, where_one: bool) -> None:
    assert may_write(mode, None) is where_none
    assert may_write(mode, EXAMPLE) is where_one
