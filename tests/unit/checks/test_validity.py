from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.checks.validity import PREFIX_HITS, acceptance_findings, client_findings, prefix_findings
from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.row import Row
from pytest_llmperf.metrics import compute
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.acceptance import Acceptance
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.prefix_hits import PrefixHits
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
        ("mean_token_itl_ms", "lag_mean_ms", 0.025 * 1000),
        ("p99_token_itl_ms", "lag_p99_ms", 0.025 * 100),
        ("p99_decode_tpot_ms", "lag_p99_ms", 0.025 * 1000),
        ("p99_ttft_from_schedule_ms", "lag_p99_ms", 0.025 * 100),
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


def test_a_value_of_nought_is_moved_by_any_lag() -> None:
    values = {**VALUES, "median_itl_ms": 0.0}
    late = by_name(client_findings(client(lag_p50_ms=0.01), values, [gate("median_itl_ms")]))["client_lag"]
    assert late.metrics == frozenset({"median_itl_ms"})
    on_time = by_name(client_findings(client(), values, [gate("median_itl_ms")]))["client_lag"]
    assert on_time.status is Status.PASS


SATURATED = [
    # Of 1000 streams at one chunk every 20 ms, read by one core: lag p50, p99; ITL median, P99 as they were reported.
    ("aiohttp and JSON in a coroutine", 415.0, 1198.0, 0.018, 520.0),
    ("vllm bench serve", 395.0, 982.0, 0.008, 458.0),
    ("vllm bench serve, uvloop", 36.0, 108.0, 20.5, 62.0),
    ("a protocol that parses JSON", 7.2, 82.0, 20.18, 53.9),
    ("a protocol that only stamps", 2.9, 11.4, 20.09, 24.1),
]
"""Measured of these clients side by side; all of them are too late for gates of 5 %, and most of them look healthy."""


@pytest.mark.parametrize(("name", "p50", "p99", "median", "tail"), SATURATED)
def test_a_saturated_client_never_passes_as_a_fast_engine(
    name: str, p50: float, p99: float, median: float, tail: float
) -> None:
    values = {"median_itl_ms": median, "p99_itl_ms": tail, "mean_itl_ms": 20.0, "mean_e2el_ms": 3000.0}
    late = client(lag_mean_ms=p50, lag_p50_ms=p50, lag_p99_ms=p99, coalesced_share=0.6 if p50 > 20 else 0.0)
    gates = [gate("median_itl_ms", 0.05), gate("p99_itl_ms", 0.05), gate("p99_tpot_ms", 0.01), gate("mean_itl_ms", 0.6)]
    findings = by_name(client_findings(late, values, gates))
    assert findings["client_lag"].metrics == frozenset({"median_itl_ms", "p99_itl_ms", "p99_tpot_ms"})
    assert findings["client_coalescing"].invalidates == (p50 > 20)


def test_a_quiet_client_of_a_few_streams_is_valid() -> None:
    values = {"median_itl_ms": 20.02, "p99_itl_ms": 21.5, "mean_itl_ms": 20.0, "mean_e2el_ms": 3000.0}
    quiet = client(lag_mean_ms=0.2, lag_p50_ms=0.17, lag_p99_ms=0.74, coalesced_share=0.001)  # as measured at 64
    gates = [gate("median_itl_ms", 0.05), gate("p99_itl_ms", 0.15), gate("output_throughput", 0.02)]
    assert not any(finding.invalidates for finding in client_findings(quiet, values, gates))


@given(
    pace_ms=st.floats(1, 50), late_ms=st.floats(0.01, 200), streams=st.integers(1, 4), margin=st.floats(0.02, 0.8),
    phases=st.lists(st.floats(0, 1), min_size=4, max_size=4),
)  # fmt: skip
def test_what_a_late_client_prints_of_gaps_is_either_right_or_invalid(
    pace_ms: float, late_ms: float, streams: int, margin: float, phases: list[float]
) -> None:
    """A client that looks at its streams every ``late_ms`` sees each chunk at the next look."""
    true_ns = (np.arange(200) * pace_ms + 1000) * 1e6
    looks_ns = late_ms * 1e6
    stamps = [(np.ceil(true_ns / looks_ns + phase) - phase) * looks_ns for phase in phases[:streams]]
    records = records_of(
        Row(index=i, planned_input_tokens=1, asked_tokens=200, outcome=Outcome.OK, sent_ns=0, done_ns=int(each[-1]),
            first_token_ns=int(each[0]), last_token_ns=int(each[-1]), chunk_ns=each.astype(int).tolist())
        for i, each in enumerate(stamps)
    )  # fmt: skip
    values = compute(records, (0, int(max(each[-1] for each in stamps))), None)
    lags_ms = np.concatenate([each - true_ns for each in stamps]) / 1e6
    facts = client(lag_mean_ms=lags_ms.mean(), lag_p50_ms=np.median(lags_ms), lag_p99_ms=np.percentile(lags_ms, 99))
    for name in ("median_itl_ms", "p99_itl_ms"):
        found = client_findings(facts, values, [gate(name, margin)])
        # A median of 0 is no value: the judge says INVALID of it.
        wrong = name in values and abs(values[name] - pace_ms) > margin * pace_ms
        assert not wrong or found[0].invalidates


def test_chunks_that_the_server_sent_together_are_no_fault_of_the_client() -> None:
    gates = [gate("median_itl_ms"), gate("output_throughput")]
    values = VALUES | {"mean_itl_ms": 5.0}
    together = by_name(client_findings(client(coalesced_share=0.6, lag_p99_ms=4.9), values, gates))["client_coalescing"]
    assert together.status is Status.PASS
    assert together.value.startswith("60.0% of the chunks came with the one before, one every 5.00 ms")
    late = by_name(client_findings(client(coalesced_share=0.6, lag_p99_ms=5.1), values, gates))["client_coalescing"]
    assert late.invalidates
    assert late.metrics == frozenset({"median_itl_ms"})
    few = by_name(client_findings(client(coalesced_share=0.004, lag_p99_ms=5.1), values, gates))["client_coalescing"]
    assert few.status is Status.PASS
    none = by_name(client_findings(client(coalesced_share=None), values, gates))["client_coalescing"]
    assert none.status is Status.UNSUPPORTED


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


def prefix(
    *counts: tuple[int, int],
    outcome: Outcome = Outcome.OK,
    expected: tuple[float, float] = PREFIX_HITS,
    counted: PrefixHits | None = None,
) -> Finding:
    rows = [
        Row(index=i, planned_input_tokens=-1, asked_tokens=1, cached_tokens=cached, input_tokens=sent, outcome=outcome)
        for i, (cached, sent) in enumerate(counts)
    ]
    return prefix_findings(records_of(rows), expected, counted=counted)


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


def test_a_server_that_speaks_of_hits_alone_has_none_where_it_is_silent() -> None:
    assert prefix((17, 256), *[(-1, 256)] * 24).status is Status.PASS, "16 of 6400 tokens"
    assert prefix((17, 32), *[(-1, 32)] * 3).status is Status.FAIL, "16 of 128 tokens"


@pytest.mark.parametrize(
    ("looked_up", "found", "status"),
    [
        (128, 64, Status.FAIL),
        (128, 2, Status.PASS),  # a BOS of each of the two prompts
        (0, 0, Status.PASS),  # the cache is off
        (12800, 66, Status.PASS),
        (12800, 200, Status.FAIL),
    ],
)
def test_where_usage_does_not_say_the_engines_counters_do(looked_up: int, found: int, status: Status) -> None:
    finding = prefix((-1, 64), (-1, 64), counted=PrefixHits(looked_up=looked_up, found=found))
    assert finding.status is status
    assert finding.evidence == f"the engine's counters: {found} of {looked_up} tokens looked up were found"


def test_usage_is_this_runs_own_and_comes_before_counters() -> None:
    assert prefix((0, 64), (0, 64), counted=PrefixHits(looked_up=128, found=128)).status is Status.PASS


def test_a_shared_prefix_that_was_not_found_in_the_cache_is_not_a_warm_cache() -> None:
    finding = prefix_findings(records_of([Row(index=0, planned_input_tokens=16, asked_tokens=1, outcome=Outcome.OK,
                                              input_tokens=16, cached_tokens=0)]), (0.4, 0.6))  # fmt: skip
    assert finding.invalidates
    assert "is the engine's prefix cache on?" in finding.remedy


def accepted(steps: int, accepted: int, drafted: int, *, output: int = 256, requests: int = 4) -> list[Finding]:
    rows = [
        Row(index=i, planned_input_tokens=1, asked_tokens=1, output_tokens=output, outcome=Outcome.OK)
        for i in range(requests)
    ]
    return acceptance_findings(Acceptance(steps=steps, accepted=accepted, drafted=drafted), records_of(rows))


@pytest.mark.parametrize(
    ("counts", "output", "requests"),
    [
        ((388, 632, 1156), 256, 4),  # as recorded of llama.cpp: steps + accepted + requests = output
        ((312, 456, 936), 256, 3),  # as recorded of vLLM: the last step of an answer drafts beyond its end
        ((100, 50, 100), 256, 4),  # most tokens without a draft
        ((0, 0, 0), 256, 4),
        ((388, 632, 1156), -1, 4),  # the server does not say how many tokens there were
        ((16, 16, 48), 8, 4),  # short answers, whole drafts beyond their ends
    ],
)
def test_counters_of_this_run_alone(counts: tuple[int, int, int], output: int, requests: int) -> None:
    (finding,) = accepted(*counts, output=output, requests=requests)
    assert finding.status is Status.PASS


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((10, 31, 30), "31 accepted of only 30 drafted"),
        ((31, 10, 30), "31 steps with only 30 drafted"),
        ((-1, 10, 30), "a negative count"),
        ((500, 700, 1500), "1200 tokens counted (steps + accepted), 1024 in the run's answers"),
    ],
)
def test_counters_that_cannot_be_invalidate_acceptance_alone(counts: tuple[int, int, int], said: str) -> None:
    (finding,) = accepted(*counts)
    assert finding.invalidates
    assert said in finding.value
    assert finding.metrics == frozenset(name for name, metric in METRICS.items() if metric.group == "acceptance")


def test_without_speculation_there_is_nothing_to_check() -> None:
    assert acceptance_findings(None, records_of([])) == []
