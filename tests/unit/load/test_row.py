from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_llmperf.load.answer import Answer
from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.job import JobRequest
from pytest_llmperf.load.row import Row, answer_fault, read_row, unsent_row
from pytest_llmperf.load.sse import parse_events
from pytest_llmperf.model.outcome import Outcome

STREAM = (Path(__file__).parents[2] / "data" / "streams" / "vllm-0.32.0_chat.sse").read_bytes()
EVENTS = list(zip(*parse_events(STREAM), strict=True))
REQUEST = JobRequest(index=7, body="{}", at_ns=None, planned_input_tokens=5, asked_tokens=16)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(body: bytes, size: int) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces) + b"0\r\n\r\n"


def received(raw: bytes, cuts: list[int]) -> Exchange:
    """An exchange whose reads end at ``cuts``; the k-th read is stamped 1000 + k."""
    exchange = Exchange(request=b"", sent_ns=10)
    for number, end in enumerate([*sorted({cut % len(raw) for cut in cuts} - {0}), len(raw)]):
        exchange.reads.append(raw[len(exchange.raw) : end])
        exchange.stamps.append(1000 + number)
        exchange.framing.complete(exchange.reads[-1])
    exchange.end(5000)
    return exchange


def read(raw: bytes, cuts: list[int] | None = None, *, exact: bool = True) -> Row:
    return read_row(REQUEST, received(raw, cuts or []), exact_output=exact)


@settings(deadline=None)
@given(size=st.integers(1, 600), cuts=st.lists(st.integers(0, 2**31), max_size=40))
def test_a_row_is_the_same_for_every_split_and_each_chunk_has_the_stamp_of_its_last_byte(
    size: int, cuts: list[int]
) -> None:
    raw = HEAD + chunked(STREAM, size)
    row = read(raw, cuts)
    assert (row.outcome, row.reason, row.output_tokens, row.input_tokens, row.status) == (0, "", 16, 81, 200)
    ends = [*sorted({cut % len(raw) for cut in cuts} - {0}), len(raw)]
    texts = [end for data, end, _ in EVENTS if b'"content":" ' in data]
    # where in the raw response is the last byte of each event?
    raw_ends = [
        len(HEAD) + end + sum(len(f"{min(size, len(STREAM) - start):x}") + 4 for start in range(0, end, size)) - 2
        for end in texts
    ]
    expected = [1000 + next(k for k, end in enumerate(ends) if end >= raw_end) for raw_end in raw_ends]
    assert list(row.chunk_ns) == expected
    assert (row.first_token_ns, row.last_token_ns) == (expected[0], expected[-1])


def test_an_event_that_comes_alone_has_the_stamp_of_its_own_read() -> None:
    pieces = [STREAM[start:end] for start, end in pairwise([0, *(end for _, end, _ in EVENTS)])]
    raws = [f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces]
    row = read(HEAD + b"".join(raws) + b"0\r\n\r\n", list(accumulate(map(len, [HEAD, *raws]))))
    assert list(row.chunk_ns) == [1002 + number for number in range(16)]  # after the head and the role


@given(st.integers(0, len(STREAM) - 1))
def test_no_prefix_of_a_stream_counts_as_a_success(length: int) -> None:
    last_text = next(end for data, end, _ in EVENTS if b'"finish_reason":"length"' in data)
    row = read(HEAD + chunked(STREAM[:length], 100) if length else HEAD + b"0\r\n\r\n")
    if length < last_text:
        assert row.outcome == Outcome.FAILED
        assert "closed mid-stream" in row.reason
    else:  # its end was announced; only the usage may be missing
        assert row.output_tokens in {16, -1}


def test_an_error_status_is_told_with_its_message() -> None:
    body = b'{"error": {"message": "the queue is full"}}'
    row = read(b"HTTP/1.1 503 X\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert (row.outcome, row.status, row.reason) == (Outcome.FAILED, 503, "HTTP 503: the queue is full")


def test_an_answer_that_is_no_stream_is_shown() -> None:
    body = b'{"choices": [{"text": "hello"}]}'
    row = read(b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert row.outcome == Outcome.FAILED
    assert "application/json" in row.reason
    assert "hello" in row.reason


def test_what_came_before_an_abort_is_kept() -> None:
    exchange = Exchange(request=b"", sent_ns=10)
    exchange.reads.append(HEAD + chunked(STREAM[:1000], 5000)[:-5])
    exchange.stamps.append(1000)
    assert not exchange.framing.complete(exchange.raw)
    exchange.end(9000, Outcome.TIMED_OUT, "stalled")
    row = read_row(REQUEST, exchange, exact_output=True)
    assert (row.outcome, row.reason) == (Outcome.TIMED_OUT, "stalled, after 3 chunks")
    assert (row.first_token_ns, row.done_ns, len(row.chunk_ns)) == (1000, 9000, 3)


def test_an_unsent_request_has_no_times() -> None:
    row = unsent_row(REQUEST, "worker lost")
    assert (row.index, row.sent_ns, row.done_ns, row.outcome) == (7, -1, -1, Outcome.FAILED)
    assert row.reason == "not sent: worker lost"


@pytest.mark.parametrize(
    ("answer", "exact", "fault"),
    [
        (Answer(chunk_ends=(1,), done=True, output_tokens=16), True, ""),
        (Answer(chunk_ends=(1,), finish_reason="length", output_tokens=9), True, "asked 16 output tokens, got 9"),
        (Answer(chunk_ends=(1,), finish_reason="length", output_tokens=17), True, "asked 16 output tokens, got 17"),
        (Answer(chunk_ends=(1,), finish_reason="stop", output_tokens=9), False, ""),
        (Answer(chunk_ends=(1,), finish_reason="stop"), False, ""),
        (Answer(chunk_ends=(1,), finish_reason="length"), True, ""),
        (Answer(chunk_ends=(1,), finish_reason="tool_calls", output_tokens=16), True, ""),
        (
            Answer(chunk_ends=(1,), done=True, output_tokens=9),
            False,
            "[DONE] after 1 chunks without a finish_reason: nothing says that the answer is whole",
        ),
        (
            Answer(chunk_ends=(1,), done=True),
            True,
            "[DONE] after 1 chunks without a finish_reason: nothing says that the answer is whole",
        ),
        (
            Answer(chunk_ends=(1, 2), done=True, finish_reason="abort", output_tokens=9),
            False,
            "the engine broke off after 2 chunks: finish_reason 'abort'",
        ),
        (
            Answer(chunk_ends=(1,), finish_reason="stop"),
            True,
            "asked 16 output tokens, ended by 'stop' and reported no usage",
        ),
        (Answer(chunk_ends=(), done=True, output_tokens=16), False, "HTTP 200 without a single token"),
        (Answer(chunk_ends=(1, 2)), False, "closed mid-stream after 2 chunks: no finish_reason, no [DONE]"),
        (Answer(chunk_ends=(1,), done=True, error="error event: ill"), False, "error event: ill"),
    ],
)
def test_faults(answer: Answer, exact: bool, fault: str) -> None:
    assert answer_fault(answer, asked=16, exact_output=exact) == fault
