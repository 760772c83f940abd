"""Timings: what one side, the server or a client, says of a run. Latencies are vLLM's, in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ENTRY = np.dtype([("ns", "i8"), ("stream", "i4"), ("event", "i4")])
"""A line of the programs' logs; event -1 is the request, 0.. the events of its answer."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Latency:
    mean: float
    median: float
    p99: float

    @classmethod
    def of(cls, sample: npt.ArrayLike) -> Latency:
        values: Numbers = np.asarray(sample, dtype=np.float64)
        median, p99 = np.percentile(values, [50, 99])
        return cls(float(values.mean()), float(median), float(p99))


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """``itl`` is over all gaps between chunks of a stream; ``tokens`` are those of all streams together."""

    streams: int
    tokens: int
    ttft: Latency
    tpot: Latency
    itl: Latency
    e2el: Latency

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Timings:
        latencies = {name: Latency(**fields[name]) for name in ("ttft", "tpot", "itl", "e2el")}
        return cls(streams=fields["streams"], tokens=fields["tokens"], **latencies)

    @classmethod
    def of_log(cls, file: Path, *, others: int = 0) -> Timings:
        """Read a log of events with one token each; the last ``others`` events of each stream have none."""
        log = np.fromfile(file, dtype=ENTRY)
        log = log[np.lexsort((log["event"], log["stream"]))]
        counts = np.unique(log["stream"], return_counts=True)[1]
        tokens = counts - 1 - others
        log = log[log["event"] < np.repeat(tokens, counts)]
        ms = log["ns"] / 1e6
        starts = np.flatnonzero(log["event"] == -1)
        ttft, e2el = ms[starts + 1] - ms[starts], ms[starts + tokens] - ms[starts]
        return cls(
            streams=len(starts),
            tokens=int(tokens.sum()),
            ttft=Latency.of(ttft),
            tpot=Latency.of((e2el - ttft) / (tokens - 1)),
            itl=Latency.of(np.diff(ms)[log["event"][1:] > 0]),
            e2el=Latency.of(e2el),
        )
