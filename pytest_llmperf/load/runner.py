"""The runner: sends the requests of one worker when they are due, and waits for their ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic_ns

from pytest_llmperf.load.conversation import Conversation
from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.pool import Pool
from pytest_llmperf.model.outcome import Outcome

_CONNECT_AHEAD_S = 0.1
"""In an open loop a connection is made ready this long before its request is due."""


class Runner:
    """Runs conversations, most of them of one turn, over a pool; counts what is in flight.

    Attributes:
        in_flight: dispatched and not ended.
        busy_since_ns: when ``in_flight`` last rose from 0.
        done: ended, in whatever way.
        failed: ended without a whole HTTP 200 response, as far as the transport can tell.
    """

    def __init__(self, conversations: Sequence[Conversation], pool: Pool, request_timeout_s: float) -> None:
        self._conversations = conversations
        self._pool = pool
        self._timeout_s = request_timeout_s
        self.in_flight = 0
        self.busy_since_ns = 0
        self.done = 0
        self.failed = 0

    async def run_closed(self, concurrency: int) -> None:
        """A closed loop: each of ``concurrency`` lanes sends its next request when its last one has ended."""
        waiting = iter(self._conversations)

        async def lane() -> None:
            for conversation in waiting:
                await self._hold(conversation)

        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(lane())
                await _turn_of_the_loop()

    async def run_open(self) -> None:
        """An open loop: each conversation at its own absolute time, however the ones before it fare."""
        async with asyncio.TaskGroup() as group:
            for conversation in sorted(self._conversations, key=_starts_at_ns):
                await sleep_until(_starts_at_ns(conversation) - round(_CONNECT_AHEAD_S * 1e9))
                group.create_task(self._hold(conversation))
                await _turn_of_the_loop()

    async def _hold(self, conversation: Conversation) -> None:
        """All turns, each as soon as the one before it has ended."""
        for turn, exchange in enumerate(conversation.exchanges):
            if conversation.go_on(turn):
                await self._perform(exchange)
            else:
                exchange.end(monotonic_ns(), Outcome.FAILED, "not sent: the turn before it has no answer")
                self.done += 1
                self.failed += 1

    async def _perform(self, exchange: Exchange) -> None:
        self._begin()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._send(exchange)
        except TimeoutError:
            exchange.end(monotonic_ns(), Outcome.TIMED_OUT, f"no end of the answer within {self._timeout_s:g} s")
        except OSError as error:
            refused = isinstance(error, ConnectionRefusedError)
            exchange.end(monotonic_ns(), Outcome.FAILED, "connection refused" if refused else str(error))
        finally:
            self.in_flight -= 1
        self.done += 1
        head = exchange.framing.head
        self.failed += exchange.outcome is not Outcome.OK or head is None or head.status != 200  # noqa: PLR2004

    def _begin(self) -> None:
        if self.in_flight == 0:
            self.busy_since_ns = monotonic_ns()
        self.in_flight += 1

    async def _send(self, exchange: Exchange) -> None:
        """Carry the exchange; once more when the server had closed a kept connection before it saw the request."""
        connection = await self._pool.take()
        stale = connection.used
        try:
            await sleep_until(exchange.at_ns)
            await connection.carry(exchange)
        finally:
            self._pool.give_back(connection)
        if stale and not exchange.reads:
            exchange.reopen()
            fresh = await self._pool.open()
            try:
                await fresh.carry(exchange)
            finally:
                self._pool.give_back(fresh)


async def _turn_of_the_loop() -> None:
    """Between two sends that are due at once, what has come meanwhile is read: else its stamps wait for all of them."""
    await asyncio.sleep(0)


def _starts_at_ns(conversation: Conversation) -> int:
    return conversation.exchanges[0].at_ns


async def sleep_until(at_ns: int) -> None:
    """Wait for a monotonic time; late by the loop's timer at most, never early."""
    while (left_ns := at_ns - monotonic_ns()) > 0:  # noqa: ASYNC110 (not a poll: the loop's timers may fire early)
        await asyncio.sleep(left_ns / 1e9)
