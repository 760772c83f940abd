from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from pytest_llmperf.load.conversation import Conversation
from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.pool import Pool
from pytest_llmperf.load.runner import Runner

REQUESTS = 5


class Watched:
    """In place of a pool and of its connections; knows in which turn of the loop each exchange was sent."""

    used = False

    def __init__(self) -> None:
        self.turn = 0
        self.sent_in: list[int] = []
        self.watch()

    def watch(self) -> None:
        self.turn += 1
        self.next = asyncio.get_running_loop().call_soon(self.watch)

    async def take(self) -> Watched:
        return self

    def give_back(self, connection: Watched) -> None:
        pass

    async def carry(self, exchange: Exchange) -> None:
        self.sent_in.append(self.turn)
        await asyncio.sleep(0.05)  # longer than it takes to send all


async def turns(run: Callable[[Runner], Coroutine[Any, Any, None]]) -> list[int]:
    watched = Watched()
    conversations = [Conversation([Exchange(request=b"", at_ns=0)], [b""], bytes) for _ in range(REQUESTS)]
    await run(Runner(conversations, cast("Pool", watched), 10.0))
    watched.next.cancel()
    return watched.sent_in


@pytest.mark.parametrize(
    "run", [Runner.run_open, lambda runner: runner.run_closed(REQUESTS)], ids=["all at once", "closed loop"]
)
def test_between_two_sends_that_are_due_at_once_the_loop_reads(
    run: Callable[[Runner], Coroutine[Any, Any, None]],
) -> None:
    assert len(set(asyncio.run(turns(run)))) == REQUESTS
