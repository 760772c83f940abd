from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.row import Row
from pytest_llmperf.metrics.concurrency import max_in_flight, mean_in_flight
from pytest_llmperf.model.records import Records

Spans = list[tuple[int, int]]


def records(spans: Spans) -> Records:
    return records_of(
        Row(index=i, planned_input_tokens=-1, asked_tokens=1, sent_ns=sent, done_ns=done)
        for i, (sent, done) in enumerate(spans)
    )


SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (min(pair), max(pair) + 1)))


@given(SPANS)
def test_max_in_flight_is_the_largest_overlap(spans: Spans) -> None:
    overlap = max((sum(sent <= moment < done for sent, done in spans) for moment in range(22)), default=0)
    assert max_in_flight(records(spans)) == overlap


@given(SPANS)
def test_mean_in_flight_is_the_mean_overlap_and_never_above_the_largest(spans: Spans) -> None:
    overlaps = [sum(sent <= moment < done for sent, done in spans) for moment in range(21)]
    mean = mean_in_flight(records(spans), (0, 21))
    assert abs(mean - sum(overlaps) / 21) < 1e-9
    assert mean <= max_in_flight(records(spans))


def test_unsent_requests_are_not_in_flight() -> None:
    assert max_in_flight(records([(-1, 9), (5, 9)])) == 1
    assert mean_in_flight(records([(-1, 9), (5, 9)]), (5, 9)) == 1
