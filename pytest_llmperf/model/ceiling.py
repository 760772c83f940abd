"""A ceiling: what the load client of a machine carries, against servers of our own that stream at a known pace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pytest_llmperf.model.run import ClientFacts

MISSED_SHARE = 0.05
"""A server that leaves out more than this share of its ticks did not keep its pace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How well the servers kept their pace; of several, the sums of counts and the worst of the others.

    Attributes:
        chunks: sent in all.
        ticks: that were kept.
        missed: that were due and had to be left out, because the one before took too long.
        blocked: sends that the client's buffers did not take whole.
        late_p99_ms: 99th percentile of: a tick's last send, after it was due.
        cpu_share: CPU time over wall time, from the first tick to the last.
        gap_p50_ms: median time between two sends on one stream.
        gap_p99_ms: 99th percentile of it.
    """

    chunks: int
    ticks: int
    missed: int
    blocked: int
    late_p99_ms: float
    cpu_share: float
    gap_p50_ms: float
    gap_p99_ms: float

    @property
    def kept(self) -> bool:
        """Whether the streams were as fast as they were meant to be."""
        return self.chunks > 0 and self.missed <= MISSED_SHARE * (self.ticks + self.missed)

    @classmethod
    def of(cls, paces: Sequence[Pace]) -> Pace:
        """Of several servers at once; of at least one."""
        return cls(
            chunks=sum(pace.chunks for pace in paces),
            ticks=sum(pace.ticks for pace in paces),
            missed=sum(pace.missed for pace in paces),
            blocked=sum(pace.blocked for pace in paces),
            late_p99_ms=max(pace.late_p99_ms for pace in paces),
            cpu_share=max(pace.cpu_share for pace in paces),
            gap_p50_ms=max(pace.gap_p50_ms for pace in paces),
            gap_p99_ms=max(pace.gap_p99_ms for pace in paces),
        )


Limit = Literal["", "client", "server", "requests"]
"""What kept a step from being valid: the client could not keep up, the servers could not, or requests failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One load, carried or not.

    Attributes:
        chunks_per_s: that arrived, over the window.
        cpu_us_per_chunk: of the client, all workers together; of the busiest one times their number.
        client: how it fared.
        sent: how the servers fared.
        itl_ms: median and 99th percentile of the gaps that the client saw, None where it saw none; the servers' own
            are in ``sent``.
        invalid: the metrics that a run would not judge, each with the reason.
        tails: whether percentiles are valid, and not only means.
        limit: "" for a step whose means are valid.
        why: the reason in words.
    """

    workers: int
    streams: int
    chunks_per_s: float
    cpu_us_per_chunk: float
    client: ClientFacts
    sent: Pace
    itl_ms: tuple[float, float] | None
    invalid: Mapping[str, str] = field(default_factory=dict)
    tails: bool = True
    limit: Limit = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """What a number of workers carries.

    Attributes:
        steps: in order.
        bounded: whether the time was up, or the streams that are tried at most were carried: there may be more.
    """

    workers: int
    steps: tuple[Step, ...]
    bounded: bool = False

    @property
    def best(self) -> Step | None:
        """The largest load that was valid, None when none was."""
        return max((step for step in self.steps if not step.limit), key=lambda step: step.streams, default=None)

    @property
    def best_tails(self) -> Step | None:
        """The largest load of which percentiles were valid as well."""
        return max((step for step in self.steps if step.tails), key=lambda step: step.streams, default=None)

    @property
    def failed(self) -> Step | None:
        """The smallest load that was not valid and larger than all valid ones; None when there was none."""
        least = 0 if self.best is None else self.best.streams
        beyond = (step for step in self.steps if step.limit and step.streams > least)
        return min(beyond, key=lambda step: step.streams, default=None)
