"""What users of other load generators complained of, about metrics: see tests/complaints.md."""

from __future__ import annotations

import pytest

from pytest_llmperf import metrics
from pytest_llmperf.model.records import NEVER, Outcome
from pytest_llmperf.model.slo import Slo
from tests.unit.metrics.examples import MS, WINDOW, records, request


def test_a_wait_before_the_send_is_seen() -> None:
    values = metrics.compute(records(request([1932], sent_ms=1425, scheduled_ms=0)), WINDOW, None)
    assert (values["mean_e2el_ms"], values["mean_e2el_from_schedule_ms"]) == pytest.approx((507, 1932))
    assert values["mean_ttft_from_schedule_ms"] == pytest.approx(1932)


def test_speculation_does_not_make_tokens_slow() -> None:
    chunks = [100 + 8.72 * n for n in range(101)]
    values = metrics.compute(records(request(chunks, each=[1] + [2, 3] * 50)), WINDOW, None)
    assert values["mean_itl_ms"] == pytest.approx(8.72)
    assert values["mean_token_itl_ms"] == pytest.approx(8.72 / 2.5)
    assert values["mean_tpot_ms"] == pytest.approx(8.72 / 2.5)


def test_the_peak_counts_tokens() -> None:
    steps = records(request(range(0, 1000, 10), each=[4] * 100))
    values = metrics.compute(steps, WINDOW, None)
    assert (values["max_output_tokens_per_s"], values["output_throughput"]) == (400, 200)


def test_a_ttft_is_no_itl() -> None:
    values = metrics.compute(records(request([900, 910, 920]), request([1400, 1410], sent_ms=500)), WINDOW, None)
    assert values["mean_itl_ms"] == values["p99_itl_ms"] == pytest.approx(10)
    assert values["mean_ttft_ms"] == 900


def test_a_stall_is_seen() -> None:
    smooth = request([100 + 10 * n for n in range(50)])
    stalled = request([100 + 10 * n for n in range(49)] + [1500])
    values = metrics.compute(records(smooth, stalled), WINDOW, None)
    assert values["median_itl_ms"] == pytest.approx(10)
    assert values["p99_itl_ms"] > 15


def test_no_pace_is_absent_and_not_zero() -> None:
    for one in (request([100], tokens=5), request([100, 100], each=[2, 3])):
        values = metrics.compute(records(one), WINDOW, None)
        assert not [name for name in values if "tpot" in name]
        beside = metrics.compute(records(one, request([100, 120, 140], each=[1, 1, 1])), WINDOW, None)
        assert beside["mean_tpot_ms"] == pytest.approx(20), "nor is it a 0 among others"


COUNTED = {
    "mean_tpot_ms", "mean_token_itl_ms", "output_throughput", "total_token_throughput", "max_output_tokens_per_s",
    "slo_attainment",
}  # fmt: skip


def test_unknown_is_absent_and_not_zero() -> None:
    values = metrics.compute(records(request([100, 120], tokens=NEVER)), WINDOW, None, slo=Slo(tpot_s=1))
    assert all(value > 0 for value in values.values())
    assert not COUNTED & set(values)
    beside = records(request([100, 120], tokens=NEVER), request([100, 120], each=[50, 50]))
    assert not COUNTED & set(metrics.compute(beside, WINDOW, None, slo=Slo(tpot_s=1))), "nor is it left out of a sum"


def test_failures_lower_goodput() -> None:
    made = [request([100]), request([], outcome=Outcome.FAILED), request([], outcome=Outcome.TIMED_OUT)]
    values = metrics.compute(records(*made), WINDOW, None, slo=Slo(e2el_s=1))
    assert values["slo_attainment"] == pytest.approx(1 / 3)


def test_delivered_concurrency_is_measured() -> None:
    one_by_one = records(*(request([at + 99], sent_ms=at) for at in range(0, 1000, 100)))
    values = metrics.compute(one_by_one, (0, 1000 * MS), None)
    assert (values["max_concurrent_requests"], values["mean_concurrency"]) == (1, 1)
