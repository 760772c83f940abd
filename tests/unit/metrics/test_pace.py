from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf import metrics
from pytest_llmperf.metrics.pace import peak_tokens_per_s, steady_tokens_per_s
from pytest_llmperf.model.records import Outcome, Records
from tests.unit.metrics.examples import MS, records, request


def test_the_peak_is_weighted_by_tokens_and_not_tied_to_whole_seconds() -> None:
    made = records(request([100, 900, 1100, 1899, 2500], each=[1, 4, 2, 8, 1]))
    assert peak_tokens_per_s(made) == 4 + 2 + 8


def test_a_second_is_open_at_its_end() -> None:
    assert peak_tokens_per_s(records(request([0, 1000], each=[3, 4]))) == 4
    assert peak_tokens_per_s(records(request([0, 999], each=[3, 4]))) == 7


def test_requests_add_up() -> None:
    made = records(request([0, 500], each=[3, 4]), request([200, 1100], each=[1, 2]))
    assert peak_tokens_per_s(made) == 3 + 4 + 1


@pytest.mark.parametrize("of", [peak_tokens_per_s, steady_tokens_per_s])
def test_unknown_tokens_of_one_chunk_are_unknown(of: object) -> None:
    made = records(request([0, 500], each=[3, 4]), request([200, 1100]))
    assert callable(of)
    assert of(made) is None
    assert of(records()) is None


def test_the_steady_state_is_when_all_decode() -> None:
    made = records(
        request([100, 200, 300, 400], each=[9, 1, 2, 3]),
        request([200, 300, 350], each=[9, 4, 5]),
    )
    # from 200 ms, whose tokens were made before, to 350 ms, whose tokens were made in it
    assert steady_tokens_per_s(made) == pytest.approx((2 + 4 + 5) / 0.150)


def test_the_steady_state_of_a_closed_loop_has_neither_ramp_up_nor_drain() -> None:
    """Two lanes; the last of four requests is sent at 500 ms."""
    made = records(
        request([100, 200, 300], each=[7, 1, 1]),
        request([150, 250, 350, 480], each=[7, 1, 1, 1]),
        request([400, 450, 600], sent_ms=310, each=[2, 2, 9]),
        request([590, 700], sent_ms=500, each=[9, 9]),
    )
    # from 150 ms, when both lanes decode, to 500 ms, after which no lane gets another request
    assert steady_tokens_per_s(made) == pytest.approx((1 + 1 + 1 + 1 + 1 + 2 + 2) / 0.350)


def test_requests_one_after_another_are_steady_from_the_first_token_on() -> None:
    made = records(*(request([at + 50, at + 90], sent_ms=at, each=[1, 1]) for at in (0, 100, 200)))
    assert steady_tokens_per_s(made) == pytest.approx((1 + 2) / 0.150)


def test_no_steady_state_where_not_all_that_were_in_flight_had_a_token() -> None:
    hanging = request([], sent_ms=50, outcome=Outcome.TIMED_OUT, done_ns=900 * MS)
    assert steady_tokens_per_s(records(request([100, 200], each=[1, 1]), hanging)) is None


def test_no_steady_state_where_one_ended_before_another_began() -> None:
    assert steady_tokens_per_s(records(request([100, 200], each=[1, 1]), request([200, 300], each=[1, 1]))) is None


def test_a_window_below_a_second_has_no_peak_per_second() -> None:
    made = records(request([100, 200], each=[1, 1]))
    assert "max_output_tokens_per_s" not in metrics.compute(made, (0, 999 * MS), None)
    assert metrics.compute(made, (0, 1000 * MS), None)["max_output_tokens_per_s"] == 2


CHUNKS = st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 9)), min_size=1, max_size=8)
STREAMS = st.lists(
    CHUNKS.map(lambda made: request(sorted(at for at, _ in made), each=[n for _, n in made])), min_size=1, max_size=4
).map(lambda made: records(*made))


@given(STREAMS)
def test_the_peak_is_the_largest_second(made: Records) -> None:
    chunks = list(zip(made.chunk_ns.tolist(), made.chunk_tokens.tolist(), strict=True))
    seconds = [sum(n for at, n in chunks if start <= at < start + 1000 * MS) for start, _ in chunks]
    assert peak_tokens_per_s(made) == max(seconds)


@given(STREAMS, st.integers(1, 3000))
def test_the_peak_is_never_below_the_mean(made: Records, rest_ms: int) -> None:
    window = (0, max(1000 * MS, int(made.chunk_ns.max())) + rest_ms * MS)
    values = metrics.compute(made, window, None)
    assert values["max_output_tokens_per_s"] >= values["output_throughput"]
