from __future__ import annotations

from pytest_llmperf.load.stall import silent_for_s
from pytest_llmperf.load.wire import Beat

S = 1_000_000_000


def beat(now: int, *, last_byte: int = 0, busy_since: int = 0, in_flight: int = 1) -> Beat:
    return Beat(
        now_ns=now * S, last_byte_ns=last_byte * S, busy_since_ns=busy_since * S, in_flight=in_flight,
        done=0, failed=0, chunks=0, finished=False,
    )  # fmt: skip


def test_nothing_in_flight_is_no_silence() -> None:
    assert silent_for_s([]) == 0
    assert silent_for_s([beat(100, last_byte=1, in_flight=0)]) == 0


def test_counts_from_the_last_byte() -> None:
    assert silent_for_s([beat(100, last_byte=93, busy_since=10)]) == 7


def test_a_first_request_after_idleness_starts_the_count() -> None:
    assert silent_for_s([beat(100, last_byte=20, busy_since=98)]) == 2


def test_sending_more_does_not_reset_it() -> None:
    assert silent_for_s([beat(100, busy_since=90, in_flight=1)]) == 10
    assert silent_for_s([beat(101, busy_since=90, in_flight=50)]) == 11


def test_a_byte_at_any_worker_resets_it_for_all() -> None:
    assert silent_for_s([beat(100, last_byte=40), beat(100, last_byte=99, in_flight=0)]) == 1


def test_a_worker_that_just_became_busy_does_not_hide_one_that_waits() -> None:
    assert silent_for_s([beat(100, busy_since=60), beat(100, busy_since=99)]) == 40


def test_a_late_heartbeat_is_no_silence() -> None:
    assert silent_for_s([beat(50, last_byte=49), beat(100, last_byte=48)]) == 1
