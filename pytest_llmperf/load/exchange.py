"""An exchange: one request's bytes, the stamps of its response, and how it ended at the socket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from pytest_llmperf.load.http1 import Framing
from pytest_llmperf.model.outcome import NEVER, Outcome


def reads_of(raw: bytes, offsets: Sequence[int]) -> list[bytes]:
    """The reads that brought ``raw``, each up to its offset: what ``Exchange.reads`` was."""
    return [raw[start:end] for start, end in pairwise([0, *offsets])]


@dataclass(slots=True)
class Exchange:
    """Filled while the clock runs, read after it.

    Attributes:
        request: head and body, ready for the socket.
        at_ns: when to send it, monotonic; -1 in a closed loop.
        sent_ns: when it was handed to the socket, -1 when it was not.
        done_ns: when it ended, in whatever way.
        reads: what each read brought of the response. They are joined when the clock has stopped.
        stamps: of each read, taken before anything else.
        outcome: of the transport alone; what the bytes mean is not known yet.
        reason: why it is not OK.
    """

    request: bytes
    at_ns: int = NEVER
    sent_ns: int = NEVER
    done_ns: int = NEVER
    reads: list[bytes] = field(default_factory=list)
    stamps: list[int] = field(default_factory=list)
    framing: Framing = field(default_factory=Framing)
    outcome: Outcome = Outcome.OK
    reason: str = ""

    @property
    def raw(self) -> bytes:
        """The response so far."""
        return b"".join(self.reads)

    @property
    def offsets(self) -> list[int]:
        """The length of ``raw`` after each read."""
        return list(accumulate(map(len, self.reads)))

    @property
    def ended(self) -> bool:
        """Whether anything more can happen to it."""
        return self.done_ns != NEVER

    def end(self, now_ns: int, outcome: Outcome = Outcome.OK, reason: str = "") -> None:
        """Close the exchange; only the first call counts."""
        if not self.ended:
            self.done_ns, self.outcome, self.reason = now_ns, outcome, reason

    def forget(self) -> None:
        """Let go of the response: there may be gigabytes of them, and all are read one after the other."""
        self.reads, self.stamps = [], []

    def reopen(self) -> None:
        """Forget an end that came before any byte, to send the request once more."""
        self.done_ns = self.sent_ns = NEVER
        self.outcome, self.reason = Outcome.OK, ""
