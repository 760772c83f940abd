"""Responses as a server frames them, and how they come in: read by read, through the real connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, count, pairwise
from pathlib import Path
from typing import cast
from unittest import mock

from pytest_llmperf.load.connection import Connection, Traffic
from pytest_llmperf.load.exchange import Exchange

STREAMS = Path(__file__).parents[2] / "data" / "streams"
RECORDED = {path.stem: path.read_bytes() for path in sorted(STREAMS.glob("*.sse"))}

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n"

Framed = tuple[bytes, list[int]]
"""A response, and for each byte of its body how many bytes of the response bring it."""


def chunked(body: bytes, sizes: Iterable[int]) -> Framed:
    """In chunks of these sizes, the last one as large as what is left."""
    raw, start = _HEAD % b"Transfer-Encoding: chunked\r\n", 0
    brought: list[int] = []
    for size in [*sizes, len(body)]:
        if piece := body[start : start + size]:
            raw += b"%x\r\n" % len(piece)
            brought += range(len(raw) + 1, len(raw) + len(piece) + 1)
            raw += piece + b"\r\n"
        start += size
    return raw + b"0\r\n\r\n", brought


def with_length(body: bytes) -> Framed:
    head = _HEAD % b"Content-Length: %d\r\n" % len(body)
    return head + body, list(range(len(head) + 1, len(head) + len(body) + 1))


def until_close(body: bytes) -> Framed:
    head = _HEAD % b"Connection: close\r\n"
    return head + body, list(range(len(head) + 1, len(head) + len(body) + 1))


def event_ends(stream: bytes) -> list[int]:
    """Where each event of a recorded stream ends: all of them are lines with LF, then an empty one."""
    return list(accumulate(len(event) + 2 for event in stream.split(b"\n\n")[:-1]))


def a_chunk_an_event(body: bytes) -> Framed:
    return chunked(body, [end - start for start, end in pairwise([0, *event_ends(body)])])


FRAMINGS: dict[str, Callable[[bytes], Framed]] = {
    "a chunk an event": a_chunk_an_event,
    "chunks of 1": lambda body: chunked(body, [1] * len(body)),
    "chunks of 97": lambda body: chunked(body, [97] * (len(body) // 97)),
    "one chunk": lambda body: chunked(body, []),
    "a length": with_length,
    "until the end": until_close,
}


def counted(stream: bytes, by: str) -> tuple[bytes, list[int]]:
    """A recorded stream of a model whose tokens are words, with the counts that vLLM adds when it is asked for them."""
    events, words, total = [], [], 0
    for event in stream.split(b"\n\n"):
        data = json.loads(event[6:]) if event.startswith(b"data: {") else {}
        if data.get("choices"):
            words.append(len(data["choices"][0]["text"].split()))
            total += words[-1]
            if by == "usage":
                data["usage"] = {"prompt_tokens": 67, "total_tokens": 67 + total, "completion_tokens": total}
            else:
                data["choices"][0]["token_ids"] = list(range(words[-1]))
        events.append(b"data: " + json.dumps(data).encode() if data else event)
    return b"\n\n".join(events), words


class Socket:
    """As much of a transport as the client may use: above all, nothing that pauses reading."""

    def __init__(self) -> None:
        self.sent = b""
        self.aborted = False

    def write(self, data: bytes) -> None:
        self.sent += data

    def abort(self) -> None:
        self.aborted = True


def received(raw: bytes, ends: Sequence[int], lost: Exception | None = None) -> Exchange:
    """The exchange whose reads end at ``ends``, after which the connection ends too, if the client has not ended it.

    It is sent at 0, and the clock is the number of the read, from 1.
    """
    return asyncio.run(_received(raw, ends, lost))


async def _received(raw: bytes, ends: Sequence[int], lost: Exception | None) -> Exchange:
    exchange, connection = Exchange(request=b"POST"), Connection(Traffic())
    with mock.patch("pytest_llmperf.load.connection.monotonic_ns", count().__next__):
        connection.connection_made(cast("asyncio.Transport", socket := Socket()))
        carried = asyncio.ensure_future(connection.carry(exchange))
        await asyncio.sleep(0)
        assert socket.sent == b"POST"
        for start, end in zip([0, *ends], ends, strict=False):
            if exchange.ended:
                break
            connection.data_received(raw[start:end])
        connection.connection_lost(lost)
        await asyncio.wait_for(carried, 10)
    return exchange
