"""A pace: when each piece of an answer may go on to the client, so that a loss of the wanted size comes out. Pure.

To multiply what the engine does at the moment would not be enough. In a closed loop held-back answers relieve the
engine, it gets faster, and most of the loss is made up for; a saturated engine would not slow down at all. So a run
without any loss is watched first, and its figures times the wanted change are what each piece has to wait for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_llmperf.errors import UsageError
from pytest_llmperf.injection.stream import Stream
from pytest_llmperf.model.injection import Injection


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A run without a loss, as the proxy saw it.

    Attributes:
        ttft_ns: mean of first token - request, over streams.
        gap_ns: mean of (last piece - first token) / events after it, over streams that have any.
        events_per_s: events of all streams / (last piece - first request).
    """

    ttft_ns: float
    gap_ns: float
    events_per_s: float

    @classmethod
    def of(cls, streams: Iterable[Stream]) -> Watched:
        """The figures of the streams of one run.

        Raises:
            UsageError: there are none with a token: nothing can be slowed down by a share.
        """
        seen = [each for each in streams if each.first_ns is not None]
        if not seen:
            raise UsageError("nothing can be injected: no answer of the engine had a token that the proxy could see")
        ttfts = [(each.first_ns or 0) - each.asked_ns for each in seen]
        gaps = [((each.last_ns or 0) - (each.first_ns or 0)) / each.after_first for each in seen if each.after_first]
        took_ns = max(each.last_ns or each.first_ns or 0 for each in seen) - min(each.asked_ns for each in seen)
        return cls(
            ttft_ns=sum(ttfts) / len(ttfts),
            gap_ns=sum(gaps) / len(gaps) if gaps else 0.0,
            events_per_s=sum(each.events for each in seen) / max(took_ns, 1) * 1e9,
        )


@dataclass(slots=True)
class Pace:
    """Release times under one injection, for all streams of a run.

    ``throughput``: all events, whatever their stream, go on at ``events_per_s`` times (1 - share).
    ``ttft``: a first token waits for (1 + share) times its own time, and for what the engine gained by being
    relieved: the watched mean less the mean so far, times (1 + share). What follows keeps its distance to it.
    ``tpot``: event k after the first token waits for (1 + share) times its own distance to it, and for k times the
    watched gap times (1 + share). ``e2el``: both.
    """

    injection: Injection
    watched: Watched
    _firsts: int = 0
    _ttft_sum_ns: float = 0.0
    _next_ns: float = 0.0

    def release_ns(self, stream: Stream, now_ns: int, events: int) -> float:
        """When the piece that ``stream`` has just taken, with so many events, may go on; never before ``now_ns``."""
        if self.injection.kind == "throughput":
            self._next_ns = max(now_ns, self._next_ns)
            self._next_ns += events / (self.watched.events_per_s * (1 - self.injection.share)) * 1e9
            return self._next_ns
        if stream.first_ns is None:
            return now_ns
        if stream.first_ns == now_ns:
            return self._first(stream, now_ns)
        distance = float(now_ns - stream.first_ns)
        if self.injection.kind in {"tpot", "e2el"}:
            slower = 1 + self.injection.share
            distance = max(distance * slower, stream.after_first * self.watched.gap_ns * slower)
        return max(now_ns, stream.first_released_ns + distance)

    def _first(self, stream: Stream, now_ns: int) -> float:
        released = float(now_ns)
        if self.injection.kind in {"ttft", "e2el"}:
            own = now_ns - stream.asked_ns
            self._firsts += 1
            self._ttft_sum_ns += own
            relief = max(0.0, self.watched.ttft_ns - self._ttft_sum_ns / self._firsts)
            released = stream.asked_ns + (own + relief) * (1 + self.injection.share)
        stream.first_released_ns = released
        return released
