"""A connection: the hot path. Per read it stamps, counts and appends, and finds the end of the response; no more."""

from __future__ import annotations

import asyncio
from time import monotonic_ns  # straight from the source: one call per chunk
from typing import cast

from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.http1 import HttpError
from pytest_llmperf.model.outcome import Outcome


class Traffic:
    """What all connections of one worker have seen."""

    __slots__ = ("last_byte_ns", "reads")

    def __init__(self) -> None:
        self.reads = 0
        self.last_byte_ns = 0


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection; carries one exchange at a time."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._over: asyncio.Future[None] | None = None
        self.used = False

    @property
    def reusable(self) -> bool:
        """Whether another exchange may follow."""
        return self._transport is not None and self._exchange is None

    async def carry(self, exchange: Exchange) -> None:
        """Send the request and wait until its exchange has ended, in whatever way."""
        transport = self._transport
        if transport is None:
            exchange.end(monotonic_ns(), Outcome.FAILED, "the server closed the connection")
            return
        self._exchange = exchange
        self._over = asyncio.get_running_loop().create_future()
        exchange.sent_ns = monotonic_ns()
        transport.write(exchange.request)
        await self._over
        self.used = True

    def abort(self) -> None:
        """Drop the connection at once, whatever is in flight."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: connected."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """asyncio: some bytes."""
        now = monotonic_ns()
        exchange = self._exchange
        if exchange is None:  # bytes that nobody asked for
            self.abort()
            return
        self._traffic.last_byte_ns = now
        self._traffic.reads += 1
        exchange.stamps.append(now)
        exchange.reads.append(data)
        try:
            if exchange.framing.complete(data):
                self._finish(now)
        except HttpError as error:
            self._finish(now, Outcome.FAILED, str(error))
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: closed, by whomever. For a body without a length this is its regular end."""
        self._transport = None
        if self._exchange is not None:
            reason = _why_lost(self._exchange, exc)
            self._finish(monotonic_ns(), Outcome.FAILED if reason else Outcome.OK, reason)

    def _finish(self, now_ns: int, outcome: Outcome = Outcome.OK, reason: str = "") -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.end(now_ns, outcome, reason)
            head = exchange.framing.head
            if head is None or not head.keep_alive:
                self.abort()
        if self._over is not None and not self._over.done():
            self._over.set_result(None)


def _why_lost(exchange: Exchange, error: Exception | None) -> str:
    """Why the end of the connection is a failure; "" when it is the regular end of a body without a length."""
    head = exchange.framing.head
    if error is None and head is not None and not head.chunked and head.length is None:
        return ""
    how = "reset" if isinstance(error, ConnectionResetError) else "closed" if error is None else f"lost ({error})"
    return f"connection {how} mid-stream" if exchange.reads else f"connection {how} before an answer"
