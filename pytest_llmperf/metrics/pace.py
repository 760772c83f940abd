"""Pace: output tokens over time within a run. Needs the tokens of every chunk; over successful requests."""

from __future__ import annotations

import numpy as np

from pytest_llmperf.metrics.samples import chunks_known, owners
from pytest_llmperf.model.records import Int64, Records

_SECOND_NS = 1_000_000_000


def peak_tokens_per_s(records: Records) -> int | None:
    """The most tokens that came within any second, [t, t + 1 s); None when the tokens of chunks are unknown.

    Every second that starts at a chunk is looked at, and no other one holds more.
    """
    if not chunks_known(records):
        return None
    times, tokens = _arrivals(records)
    before = np.concatenate([[0], np.cumsum(tokens)])
    ends = np.searchsorted(times, times + _SECOND_NS, side="left")
    return int((before[ends] - before[np.arange(len(times))]).max())


def steady_tokens_per_s(records: Records) -> float | None:
    """Tokens per second while all requests decode; None when they never do, or tokens of chunks are unknown.

    From the last of the first tokens to the first of the last tokens: what came at its start was made before it.
    """
    if not chunks_known(records):
        return None
    start = int(records.first_token_ns[records.ok].max())
    end = int(records.last_token_ns[records.ok].min())
    if end <= start:
        return None
    times, tokens = _arrivals(records)
    return float(tokens[(times > start) & (times <= end)].sum()) / ((end - start) / _SECOND_NS)


def _arrivals(records: Records) -> tuple[Int64, Int64]:
    """Time and tokens of each chunk of successful requests, in order of time."""
    ok = records.ok[owners(records)]
    times, tokens = records.chunk_ns[ok], records.chunk_tokens[ok].astype(np.int64)
    order = np.argsort(times, kind="stable")
    return times[order], tokens[order]
