from __future__ import annotations

from typing import Any

import pytest

from pytest_llmperf.checks.validity import client_findings, prefix_findings
from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.row import Row
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.records import Outcome
from pytest_llmperf.model.run import ClientFacts

VALUES = dict.fromkeys(METRICS, 100.0) | {"mean_e2el_ms": 1000.0, "median_itl_ms": 20.0, "p99_itl_ms": 20.0}


def client(**facts: Any) -> ClientFacts:
    quiet = {"lag_mean_ms": 0.0, "lag_p50_ms": 0.0, "lag_p99_ms": 0.0, "lag_max_ms": 0.0, "cpu_share": 0.1}
    return ClientFacts(**{"workers": 1, "schedule_lag_p99_ms": None, "max_in_flight": 4, **quiet, **facts})


def gate(name: str, margin: float = 0.1) -> Gate:
    return Gate(metric=METRICS[name], margin=margin)


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.check: finding for finding in findings}


@pytest.mark.parametrize(
    ("name", "lag", "limit_ms"),
    [
        ("p99_itl_ms", "lag_p99_ms", 0.025 * 20),
        ("median_itl_ms", "lag_p50_ms", 0.025 * 20),
        ("mean_itl_ms", "lag_mean_ms", 0.025 * 1000),
        ("p99_ttft_ms", "lag_p99_ms", 0.025 * 100),
        ("mean_ttft_ms", "lag_mean_ms", 0.025 * 100),
        ("mean_e2el_ms", "lag_mean_ms", 0.025 * 1000),
        ("p99_tpot_ms", "lag_p99_ms", 0.025 * 1000),
        ("output_throughput", "lag_mean_ms", 0.025 * 1000),
    ],
)
def test_lag_beyond_a_quarter_of_the_margin_invalidates(name: str, lag: str, limit_ms: float) -> None:
    fine = by_name(client_findings(client(**{lag: limit_ms * 0.99}), VALUES, [gate(name)]))["client_lag"]
    bad = by_name(client_findings(client(**{lag: limit_ms * 1.01}), VALUES, [gate(name)]))["client_lag"]
    assert fine.status is Status.PASS
    assert (bad.status, bad.invalidates, bad.metrics) == (Status.FAIL, True, frozenset({name}))
    assert name in bad.value


def test_only_the_metrics_that_lag_could_move_are_invalid() -> None:
    gates = [gate("p99_itl_ms"), gate("output_throughput"), gate("acceptance_length")]
    finding = by_name(client_findings(client(lag_p99_ms=5.0, lag_mean_ms=0.1), VALUES, gates))["client_lag"]
    assert finding.metrics == frozenset({"p99_itl_ms"})


def test_a_metric_without_a_value_is_not_judged_here() -> None:
    assert not any(f.invalidates for f in client_findings(client(lag_p99_ms=50.0), {}, [gate("p99_itl_ms")]))


@pytest.mark.parametrize(("share", "status"), [(0.9, Status.PASS), (0.91, Status.FAIL)])
def test_a_busy_client_invalidates_every_timing_metric(share: float, status: Status) -> None:
    gates = [gate("output_throughput"), gate("acceptance_length")]
    finding = by_name(client_findings(client(cpu_share=share), VALUES, gates))["client_cpu"]
    assert (finding.status, finding.metrics) == (status, frozenset({"output_throughput"}))


def test_a_late_schedule() -> None:
    gates = [gate("p99_ttft_ms")]
    assert "client_schedule" not in by_name(client_findings(client(), VALUES, gates))
    on_time = by_name(client_findings(client(schedule_lag_p99_ms=1.0), VALUES, gates))["client_schedule"]
    late = by_name(client_findings(client(schedule_lag_p99_ms=9.0), VALUES, gates))["client_schedule"]
    assert (on_time.status, late.status) == (Status.PASS, Status.FAIL)


def prefix(*counts: tuple[int, int], outcome: Outcome = Outcome.OK, **expected: tuple[float, float]) -> Finding:
    rows = [
        Row(index=i, planned_input_tokens=-1, asked_tokens=1, cached_tokens=cached, input_tokens=sent, outcome=outcome)
        for i, (cached, sent) in enumerate(counts)
    ]
    return prefix_findings(records_of(rows), **expected)


def test_a_cold_cache_passes_and_a_bos_is_no_hit() -> None:
    assert prefix((0, 64), (0, 64)).status is Status.PASS
    assert prefix((1, 64), (1, 64)).status is Status.PASS


def test_a_warm_cache_is_invalid_and_says_how_warm() -> None:
    finding = prefix((65, 128), (0, 128))
    assert finding.invalidates
    assert finding.metrics is None
    assert "25.0%" in finding.value


def test_an_expected_share_must_be_reached() -> None:
    assert prefix((65, 128), expected=(0.4, 0.6)).status is Status.PASS
    assert prefix((0, 128), expected=(0.4, 0.6)).status is Status.FAIL


def test_a_server_that_does_not_say_is_not_blamed() -> None:
    assert prefix((-1, 64)).status is Status.UNSUPPORTED
    assert not prefix((-1, 64)).invalidates
    assert prefix((60, 64), outcome=Outcome.FAILED).status is Status.UNSUPPORTED


def test_a_shared_prefix_that_was_not_found_in_the_cache_is_not_a_warm_cache() -> None:
    finding = prefix_findings(records_of([Row(index=0, planned_input_tokens=16, asked_tokens=1, outcome=Outcome.OK,
                                              input_tokens=16, cached_tokens=0)]), (0.4, 0.6))  # fmt: skip
    assert finding.invalidates
    assert "is the engine's prefix cache on?" in finding.remedy
