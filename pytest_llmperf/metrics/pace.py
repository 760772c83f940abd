"""Pace: output tokens over time within a run. Needs the tokens of every chunk; over successful requests."""

from __future__ import annotations

import numpy as np

from pytest_llmperf.metrics.concurrency import max_in_flight
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
    """Tokens per second between ramp-up and drain; None when there is no such time, or tokens of chunks are unknown.

    Ramp-up ends when as many requests have had their first token as are ever in flight. The drain begins with the last
    send, after which nothing takes the place of what ends; where all are sent before, with the first request's end.
    """
    if not chunks_known(records):
        return None
    lanes, firsts = max_in_flight(records), np.sort(records.first_token_ns[records.ok])
    if lanes > len(firsts):
        return None
    start = int(firsts[lanes - 1])
    end = max(int(records.sent_ns.max()), int(records.last_token_ns[records.ok].min()))
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
