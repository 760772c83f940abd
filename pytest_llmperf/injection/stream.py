"""A stream as a proxy sees it: when it was asked for, its first token, how many events came. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FIRST_TOKEN = re.compile(
    rb'"(?:content|text|reasoning|reasoning_content)"\s*:\s*"[^"]|"token_ids"\s*:\s*\[\s*\d|"tool_calls"\s*:\s*\['
)
"""A piece of an answer that bears tokens. A role alone, and an empty text, is none."""

_EVENT = re.compile(rb'"choices"\s*:\s*\[\s*\{')
"""An event that may bear tokens; those of usage alone, and ``[DONE]``, are none."""

_OVERLAP = 64
"""Bytes that are looked at again, for a sign that was cut in two."""


@dataclass(slots=True)
class Stream:
    """One request and the answer to it.

    Attributes:
        asked_ns: when the first byte of the request came.
        first_ns: when the first token came; None before.
        first_released_ns: when the first token went on to the client.
        last_ns: when the last event came; None before there is one after the first token.
        events: so far, usage and ``[DONE]`` aside.
        after_first: events since the piece that had the first token.
        chunked: whether the body is in chunks; known with the first bytes.
        answered: whether any of the answer has come.
    """

    asked_ns: int
    first_ns: int | None = None
    first_released_ns: float = 0.0
    last_ns: int | None = None
    events: int = 0
    after_first: int = 0
    chunked: bool = False
    answered: bool = False
    _tail: bytes = b""

    def take(self, now_ns: int, data: bytes) -> int:
        """Note a piece of the answer; how many events it brought."""
        if not self.answered:
            self.chunked = b"transfer-encoding: chunked" in data.lower()
        known, seen = len(self._tail), self._tail + data
        new = sum(sign.end() > known for sign in _EVENT.finditer(seen))
        self.events += new
        if self.first_ns is not None:
            self.after_first += new
            self.last_ns = now_ns if new else self.last_ns
        elif _FIRST_TOKEN.search(seen):
            self.first_ns = now_ns
        self.answered, self._tail = True, seen[-_OVERLAP:]
        return new
