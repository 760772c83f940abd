"""A stream as a proxy sees it: when it was asked for, its first token, how many events came. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FIRST_TOKEN = re.compile(
    rb'"(?:content|text|reasoning|reasoning_content)"\s*:\s*"[^"]|"token_ids"\s*:\s*\[\s*\d|"tool_calls"\s*:\s*\['
)
"""A piece of an answer that bears tokens. A role alone, and an empty text, is none."""

_EVENT = b"data:"
_OVERLAP = 64
"""Bytes of the last piece that are looked at again, for a sign that was cut in two."""


@dataclass(slots=True)
class Stream:
    """One request and the answer to it.

    Attributes:
        asked_ns: when the first byte of the request came.
        first_ns: when the first token came; None before.
        first_released_ns: when the first token went on to the client.
        last_ns: when the last bytes came.
        events: so far.
        after_first: events since the piece that had the first token.
        chunked: whether the body is in chunks; known with the first bytes.
    """

    asked_ns: int
    first_ns: int | None = None
    first_released_ns: float = 0.0
    last_ns: int | None = None
    events: int = 0
    after_first: int = 0
    chunked: bool = False
    _tail: bytes = b""

    @property
    def answered(self) -> bool:
        """Whether any of the answer has come."""
        return self.last_ns is not None

    def take(self, now_ns: int, data: bytes) -> int:
        """Note a piece of the answer; how many events it brought."""
        if not self.answered:
            self.chunked = b"transfer-encoding: chunked" in data.lower()
        new = (self._tail[-len(_EVENT) + 1 :] + data).count(_EVENT)
        self.events += new
        if self.first_ns is not None:
            self.after_first += new
        elif _FIRST_TOKEN.search(self._tail + data):
            self.first_ns = now_ns
        self.last_ns, self._tail = now_ns, data[-_OVERLAP:]
        return new
