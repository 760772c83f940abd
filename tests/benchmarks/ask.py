"""What every client is asked to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """``streams`` at once; with ``requests``, a closed loop of that many in all, else each stream once.

    Attributes:
        workers: processes of our client; None for its own choice. The others decide for themselves.
    """

    streams: int
    tokens: int
    requests: int | None = None
    workers: int | None = None

    @property
    def total(self) -> int:
        return self.requests or self.streams
