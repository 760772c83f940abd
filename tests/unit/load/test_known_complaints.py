"""What users of other load generators complained of, about streams and tokens: see tests/complaints.md."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.job import JobRequest
from pytest_llmperf.load.row import Row, read_row
from pytest_llmperf.model.outcome import NEVER, Outcome

REQUEST = JobRequest(index=0, body="{}", at_ns=None, planned_input_tokens=5, asked_tokens=4)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
ROLE = {"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}
FINISH = {"choices": [{"delta": {}, "finish_reason": "length"}]}
USAGE = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 4}}


def delta(**said: Any) -> dict[str, Any]:
    return {"choices": [{"delta": said, "finish_reason": None}]}


def event(data: Any) -> bytes:
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data).encode()) + b"\n\n"


def row(*chunks: Any, head: bytes = HEAD, exact: bool = True) -> Row:
    """The row of an answer whose k-th chunk arrives at (k+1) * 100 ns, the head with the first."""
    exchange = Exchange(request=b"", sent_ns=0)
    for number, chunk in enumerate(chunks, 1):
        exchange.reads.append((head if number == 1 else b"") + (chunk if isinstance(chunk, bytes) else event(chunk)))
        exchange.stamps.append(100 * number)
        exchange.framing.complete(exchange.reads[-1])
    exchange.end(100 * len(chunks))
    return read_row(REQUEST, exchange, exact_output=exact)


FOUR = [delta(content=f" w{n}") for n in range(4)]
DONE = event(b"[DONE]")


def test_a_role_is_no_first_token() -> None:
    found = row(ROLE, *FOUR, FINISH, USAGE, DONE)
    assert (found.reason, found.first_token_ns, list(found.chunk_ns)) == ("", 200, [200, 300, 400, 500])


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_tokens(name: str) -> None:
    found = row(ROLE, delta(**{name: "hm"}), delta(**{name: "so"}), delta(content="4"), FINISH, USAGE, DONE)
    assert (found.reason, found.first_token_ns, len(found.chunk_ns), found.output_tokens) == ("", 200, 3, 4)


@pytest.mark.parametrize("chunks", [[DONE], [ROLE, FINISH, DONE], [USAGE, DONE], [FINISH, USAGE, DONE]])
def test_an_answer_without_tokens_failed_and_has_no_time(chunks: list[Any]) -> None:
    found = row(*chunks)
    assert found.outcome == Outcome.FAILED
    assert "without a single token" in found.reason
    assert (found.first_token_ns, found.last_token_ns) == (NEVER, NEVER)


def test_usage_does_not_lengthen_a_request() -> None:
    found = row(*FOUR, FINISH, USAGE, DONE)
    assert (found.last_token_ns, found.done_ns) == (400, 700)


def test_chunks_are_not_tokens() -> None:
    bundled = row(delta(content="a b"), delta(content="c d"), FINISH, USAGE, DONE)
    silent = row(delta(content="a b"), delta(content="c d"), FINISH, DONE)
    assert (bundled.output_tokens, len(bundled.chunk_ns)) == (4, 2)
    assert (silent.reason, silent.output_tokens) == ("", NEVER)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_an_exact_answer_of_another_length_failed(count: int) -> None:
    usage = {"choices": [], "usage": {"completion_tokens": count}}
    assert row(*FOUR, FINISH, usage, DONE).reason == f"asked 4 output tokens, got {count}"
    assert row(*FOUR, FINISH, usage, DONE, exact=False).reason == ""


def test_an_error_inside_http_200_failed() -> None:
    found = row(*FOUR[:2], {"error": {"message": "the engine is gone", "code": 500}}, DONE)
    assert (found.outcome, found.reason) == (Outcome.FAILED, "error event: the engine is gone")


DIALECTS: list[Callable[[bytes], bytes]] = [
    lambda stream: stream.replace(b"\n", b"\r\n"),
    lambda stream: stream.replace(b"\n", b"\r"),
    lambda stream: stream.replace(b"data: ", b"data:"),
    lambda stream: stream.replace(b"data: ", b": ping\n\ndata: "),
    lambda stream: stream.replace(b"data: ", b": ping\ndata: "),
    lambda stream: stream.replace(b"data: ", b"event: message\nid: 1\nretry: 9\ndata: "),
    lambda stream: stream.replace(b"\n\n", b" \n\n"),
    lambda stream: stream.replace(b"\n\n", b"\n\n\n\n"),
    lambda stream: stream.replace(b', "finish', b',\ndata: "finish'),
    lambda stream: stream.replace(DONE, b""),
    lambda stream: b"\xef\xbb\xbf" + stream if b"role" in stream else stream,
    lambda stream: b": OPENROUTER PROCESSING\n\n" * 3000 + stream,
    lambda stream: stream.replace(b"data: ", b"data: \n\ndata: "),
]


@pytest.mark.parametrize("number", range(len(DIALECTS)))
def test_a_dialect_changes_nothing(number: int) -> None:
    chunks = [event(chunk) for chunk in (ROLE, *FOUR, FINISH, USAGE)]
    plain, other = row(*chunks, DONE), row(*map(DIALECTS[number], [*chunks, DONE]))
    assert plain.reason == ""
    assert other == plain


def test_a_503_failed() -> None:
    body = b'{"error": {"message": "no capacity"}}'
    found = row(body, head=b"HTTP/1.1 503 X\r\nContent-Length: %d\r\n\r\n" % len(body))
    assert (found.outcome, found.status, found.reason) == (Outcome.FAILED, 503, "HTTP 503: no capacity")


def test_a_timeout_is_an_outcome_of_its_own(tmp_path: Path) -> None:
    exchange = Exchange(request=b"", sent_ns=0)
    exchange.end(900, Outcome.TIMED_OUT, "no end of the answer within 2 s")
    found = read_row(REQUEST, exchange, exact_output=True)
    assert (found.outcome, found.first_token_ns, found.output_tokens) == (Outcome.TIMED_OUT, NEVER, NEVER)
