"""Release times: a loss of the asked size, whatever the engine gains by being relieved, and never one too early."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.errors import UsageError
from pytest_llmperf.injection.pace import Pace, Watched
from pytest_llmperf.injection.stream import Stream
from pytest_llmperf.model.injection import Injection, Slowdown

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
TOKEN = b'data: {"choices":[{"text":" w"}]}\n\n'
WATCHED = Watched(ttft_ns=100, gap_ns=10, events_per_s=1e7)  # an event every 100 ns


def released(pace: Pace, asked_ns: int, times: list[int]) -> list[float]:
    """One stream: its head, then an event at each time."""
    stream = Stream(asked_ns)
    stream.take(asked_ns, HEAD)
    return [pace.release_ns(stream, time, stream.take(time, TOKEN)) for time in times]


def test_a_run_is_watched() -> None:
    streams = []
    for asked, times in ((0, [50, 60, 70]), (100, [250, 270])):
        stream = Stream(asked)
        for time in times:
            stream.take(time, TOKEN)
        streams.append(stream)
    silent = Stream(500)
    watched = Watched.of([*streams, silent])
    assert (watched.ttft_ns, watched.gap_ns) == (100, 15)
    assert watched.events_per_s == pytest.approx(5 / 270e-9)


def test_nothing_seen_is_nothing_to_slow_down() -> None:
    with pytest.raises(UsageError, match="no answer of the engine had a token"):
        Watched.of([Stream(0)])


def test_ttft_moves_the_first_token_and_shifts_the_rest() -> None:
    assert released(Pace(Injection("ttft", 0.5), WATCHED), 1000, [1100, 1110, 1130]) == [1150, 1160, 1180]


def test_ttft_makes_up_for_an_engine_that_was_relieved() -> None:
    assert released(Pace(Injection("ttft", 0.5), WATCHED), 1000, [1040]) == [1150]


def test_tpot_stretches_what_follows_the_first_token() -> None:
    assert released(Pace(Injection("tpot", 0.5), WATCHED), 1000, [1100, 1120, 1160]) == [1100, 1130, 1190]


def test_tpot_makes_up_for_an_engine_that_was_relieved() -> None:
    assert released(Pace(Injection("tpot", 0.5), WATCHED), 1000, [1100, 1101, 1102]) == [1100, 1115, 1130]


def test_e2el_is_both() -> None:
    assert released(Pace(Injection("e2el", 1.0), WATCHED), 1000, [1100, 1110, 1120]) == [1200, 1220, 1240]


def test_throughput_is_one_pace_for_all_streams() -> None:
    pace = Pace(Injection("throughput", 0.5), WATCHED)
    both = [*released(pace, 0, [1000, 1001]), *released(pace, 0, [1002])]
    assert both == pytest.approx([1200, 1400, 1600])


@given(
    st.sampled_from(
        [Injection("ttft", 0.2), Injection("tpot", 0.2), Injection("e2el", 0.2), Injection("throughput", 0.2)]
    ),
    st.lists(st.integers(0, 10**9), min_size=1, max_size=30),
)
def test_nothing_goes_on_before_it_came(kind: Slowdown, gaps: list[int]) -> None:
    times = [sum(gaps[: n + 1]) for n in range(len(gaps))]
    pace = Pace(Injection(kind, 0.2), WATCHED)
    assert all(out >= time for out, time in zip(released(pace, 0, times), times, strict=True))
