"""Whether the load that was asked for was there, on simulated clients that are healthy, and on sick ones."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.checks.delivered import delivered_load
from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.row import Row
from pytest_llmperf.metrics.concurrency import max_in_flight
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.records import NEVER, Records
from pytest_llmperf.model.suite import Load

MS = 1_000_000
TIGHT = Gate(metric=METRICS["output_throughput"], margin=0.02)
LOOSE = Gate(metric=METRICS["mean_e2el_ms"], margin=0.4)
COUNTS = Gate(metric=METRICS["acceptance_length"], margin=0.03)


def records(sends_ms: Sequence[float], ends_ms: Sequence[float], due_ms: Sequence[float] | None = None) -> Records:
    def ns(time_ms: float) -> int:
        return NEVER if time_ms == NEVER else round(time_ms * MS)

    return records_of(
        Row(index=i, planned_input_tokens=-1, asked_tokens=1, sent_ns=ns(sent), done_ns=ns(done), scheduled_ns=ns(due))
        for i, (sent, done, due) in enumerate(zip(sends_ms, ends_ms, due_ms or [NEVER] * len(sends_ms), strict=True))
    )


def closed_loop(lanes: int, durations_ms: Sequence[float], turnaround_ms: float, turns: int = 1) -> Records:
    """Each lane sends its first request 0.05 ms after the one before, the next ones ``turnaround_ms`` after an end."""
    free = [(1 + lane * 0.05, lane) for lane in range(lanes)]
    spans = []
    for first in range(0, len(durations_ms), turns):
        sent, lane = heapq.heappop(free)
        for duration in durations_ms[first : first + turns]:
            spans.append((sent, sent + duration))
            sent += duration + turnaround_ms
        heapq.heappush(free, (sent, lane))
    return records([sent for sent, _ in spans], [end for _, end in spans])


def check(
    data: Records, load: Load, *gates: Gate, turns: int = 1, window_ms: tuple[float, float] = (0, 1000)
) -> Finding:
    window_ns = round(window_ms[0] * MS), round(window_ms[1] * MS)
    gates = gates or (TIGHT, LOOSE, COUNTS)
    return delivered_load(data, load, window_ns, gates, max_in_flight=max_in_flight(data), turns=turns)


def invalid_of(finding: Finding) -> set[str]:
    return set(finding.metrics or ())


def closed(lanes: float) -> Load:
    return Load(kind="concurrency", value=lanes)


@given(lanes=st.integers(1, 32), durations=st.lists(st.floats(20, 200), min_size=1, max_size=120),
       turnaround=st.floats(0.01, 0.2), turns=st.integers(1, 5))  # fmt: skip
def test_a_healthy_closed_loop_passes_however_few_its_requests(
    lanes: int, durations: list[float], turnaround: float, turns: int
) -> None:
    finding = check(closed_loop(lanes, durations, turnaround, turns), closed(lanes), turns=turns)
    assert finding.status is Status.PASS, finding


@given(lanes=st.integers(10, 64), missing=st.floats(0.11, 0.9), waves=st.integers(1, 5), duration=st.floats(20, 200))
def test_a_hidden_limit_of_connections_is_found(lanes: int, missing: float, waves: int, duration: float) -> None:
    limit = max(1, int(lanes * (1 - missing)))
    finding = check(closed_loop(limit, [duration] * lanes * waves, 0.1), closed(lanes))
    assert finding.invalidates
    assert invalid_of(finding) == {"output_throughput", "mean_e2el_ms"}, finding
    assert f"of {lanes} in flight" in finding.value


@pytest.mark.parametrize(
    ("turnaround_ms", "invalid"),
    [(1.5, set()), (3, {"output_throughput"}), (15, {"output_throughput", "mean_e2el_ms"})],
)
def test_what_may_be_missing_is_two_percent_or_a_quarter_of_the_margin(turnaround_ms: float, invalid: set[str]) -> None:
    finding = check(closed_loop(4, [100] * 64, turnaround_ms), closed(4))
    assert invalid_of(finding) == invalid
    assert (finding.status is Status.FAIL) == bool(invalid)


def test_more_in_flight_than_asked_is_invalid_whatever_the_margin() -> None:
    finding = check(closed_loop(5, [100] * 20, 0.1), closed(4), LOOSE)
    assert finding.invalidates
    assert finding.value == "up to 5 in flight"


def test_more_lanes_than_requests_or_conversations_are_not_missed() -> None:
    finding = check(closed_loop(8, [100] * 8, 0.1), closed(64))
    assert finding.status is Status.PASS
    assert finding.expected.startswith("8 in flight: there are no more than 8 for the 64 asked")
    assert check(closed_loop(2, [100] * 8, 0.1), closed(64), turns=4).status is Status.PASS


def test_a_request_that_takes_no_time_at_all_is_no_error() -> None:
    assert "of 2 in flight" in check(records([1, 1], [1, 1]), closed(2)).value


def test_counts_are_valid_under_any_load() -> None:
    assert check(closed_loop(1, [100] * 64, 0.1), closed(4), COUNTS).metrics == frozenset()


def test_requests_that_were_not_sent_are_named() -> None:
    data = records([0, NEVER, 10, *[NEVER] * 6], [5, 20, 20, *[20] * 6], due_ms=[0, 5, 10, *range(15, 45, 5)])
    finding = check(data, Load(kind="request_rate", value=200.0))
    assert finding.invalidates
    assert finding.value == "7 of 9 requests were not sent: 1, 3, 4, 5, 6 and 2 more"


@given(due=st.lists(st.floats(0, 5000), min_size=1, max_size=50), late=st.floats(0, 4.9))
def test_an_open_loop_that_keeps_its_schedule_passes(due: list[float], late: float) -> None:
    sends = [time + late * (i % 2) for i, time in enumerate(sorted(due))]
    data = records(sends, [sent + 50 for sent in sends], sorted(due))
    for kind in ("request_rate", "ramp", "trace"):
        assert check(data, Load(kind=kind)).status is Status.PASS


@pytest.mark.parametrize(
    ("slower", "invalid"), [(1.01, set()), (1.05, {"output_throughput"}), (1.5, {"output_throughput", "mean_e2el_ms"})]
)
def test_an_open_loop_that_is_slower_than_asked(slower: float, invalid: set[str]) -> None:
    due = [10.0 * i for i in range(101)]
    sends = [time * slower for time in due]
    finding = check(records(sends, [sent + 5 for sent in sends], due), Load(kind="request_rate", value=100.0))
    assert invalid_of(finding) == invalid
    assert finding.value == f"{100 / slower:.4g} requests/s sent"
    assert finding.expected == "100 requests/s, as scheduled"


@pytest.mark.parametrize(
    ("spread_ms", "window_ms", "invalid"),
    [
        (4, 20, set()),  # below what any send may be late
        (10, 1000, set()),
        (30, 1000, {"output_throughput"}),
        (300, 1000, {"output_throughput", "mean_e2el_ms"}),
    ],
)
@pytest.mark.parametrize("kind", ["burst", "trace"])  # a trace whose requests all come at one moment is a burst
def test_a_burst_is_sent_at_once(spread_ms: float, window_ms: float, invalid: set[str], kind: str) -> None:
    sends = [spread_ms * i / 15 for i in range(16)]
    load = Load(kind="burst" if kind == "burst" else "trace")
    finding = check(records(sends, [window_ms] * 16, [0] * 16), load, window_ms=(0, window_ms))
    assert invalid_of(finding) == invalid
    assert finding.value == f"16 requests sent within {spread_ms:.3g} ms"


def test_the_later_turns_of_a_burst_of_conversations_are_not_of_the_burst() -> None:
    sends, due = [0, 400, 1, 500], [0, NEVER, 0, NEVER]
    assert check(records(sends, [390, 900, 490, 900], due), Load(kind="burst"), turns=2).status is Status.PASS
