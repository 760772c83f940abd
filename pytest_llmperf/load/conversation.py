"""A conversation: requests of which each one repeats what was said before it. The only bodies made while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from pytest_llmperf.load.answer import read_answer
from pytest_llmperf.load.body import extract_body
from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.http1 import HttpError

Render = Callable[[bytes], bytes]
"""A JSON body, to the bytes of its request."""


class Conversation:
    """The turns of one user, sent one after another.

    Attributes:
        exchanges: one for each turn. The first one's request is ready; those of the others are made when their turn
            comes, of what was said until then.
    """

    def __init__(self, exchanges: Sequence[Exchange], bodies: Sequence[bytes], render: Render) -> None:
        self.exchanges = exchanges
        self._bodies = bodies
        self._render = render
        self._said: list[Any] = []

    def go_on(self, turn: int) -> bool:
        """Make the request of a turn; False when the turn before it has no answer to go on from."""
        if turn == 0:
            return True
        answer = _answer(self.exchanges[turn - 1])
        if not answer:
            return False
        before = orjson.loads(self._bodies[turn - 1])["messages"]
        self._said += [*before, {"role": "assistant", "content": answer}]
        body = orjson.loads(self._bodies[turn])
        body["messages"] = [*self._said, *body["messages"]]
        self.exchanges[turn].request = self._render(orjson.dumps(body))
        return True


def _answer(exchange: Exchange) -> str:
    """What was answered, "" when the exchange failed."""
    head = exchange.framing.head
    if head is None or head.status != 200:  # noqa: PLR2004
        return ""
    try:
        body = extract_body(exchange.raw, head)
    except HttpError:
        return ""
    answer = read_answer(body.data)
    ended = answer.done or answer.finish_reason is not None
    return answer.text if ended and not answer.error else ""
