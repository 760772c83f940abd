"""Samples of latencies: one value per request, or per gap. In milliseconds; over successful requests.

A sample is empty where a count that it needs is unknown for one of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pytest_llmperf.model.records import NEVER, Int64, Records

Floats = npt.NDArray[np.float64]

_NS_PER_MS = 1e6
_NONE: Floats = np.empty(0)


def ttft_ms(records: Records) -> Floats:
    """First token - send."""
    return _ms(records.first_token_ns - records.sent_ns)[records.ok]


def e2el_ms(records: Records) -> Floats:
    """Last token - send."""
    return _ms(records.last_token_ns - records.sent_ns)[records.ok]


def tpot_ms(records: Records) -> Floats:
    """(e2el - ttft) / (n - 1) of requests with several tokens in several chunks: one chunk alone has no pace."""
    if not output_known(records):
        return _NONE
    told = records.ok & (records.output_tokens > 1) & (records.last_token_ns > records.first_token_ns)
    return _decode_ms(records)[told] / (records.output_tokens[told] - 1)


def decode_tpot_ms(records: Records) -> Floats:
    """(e2el - ttft) / (n - tokens of the first chunk) of requests with several chunks."""
    if not chunks_known(records):
        return _NONE
    told = records.ok & (records.last_token_ns > records.first_token_ns)
    later = records.output_tokens[told] - records.chunk_tokens[records.chunk_start[:-1][told]]
    return _decode_ms(records)[told] / later


def itl_ms(records: Records) -> Floats:
    """Gaps between consecutive chunks of one request, pooled."""
    return _gaps(records)[0]


def token_itl_ms(records: Records) -> Floats:
    """Each gap spread evenly over the tokens of the later chunk: they came at once, and that is all that is known."""
    if not chunks_known(records):
        return _NONE
    gaps, later = _gaps(records)
    tokens = records.chunk_tokens[later]
    return np.repeat(gaps / tokens, tokens)


def ttft_from_schedule_ms(records: Records) -> Floats:
    """First token - due; what a client that cannot send in time would hide is in it."""
    return _from_schedule(records, records.first_token_ns)


def e2el_from_schedule_ms(records: Records) -> Floats:
    """Last token - due."""
    return _from_schedule(records, records.last_token_ns)


def output_known(records: Records) -> bool:
    """Whether the output tokens of every successful request are known."""
    return NEVER not in records.output_tokens[records.ok]


def chunks_known(records: Records) -> bool:
    """Whether the tokens of every chunk of every successful request are known."""
    return bool(records.ok.any()) and NEVER not in records.chunk_tokens[records.ok[owners(records)]]


def owners(records: Records) -> Int64:
    """(k) the request of each chunk."""
    return np.repeat(np.arange(len(records)), np.diff(records.chunk_start))


def _gaps(records: Records) -> tuple[Floats, Int64]:
    """The gaps, and the index of the chunk that ends each."""
    owner = owners(records)
    later = np.flatnonzero((owner[1:] == owner[:-1]) & records.ok[owner[1:]]) + 1
    return _ms(records.chunk_ns[later] - records.chunk_ns[later - 1]), later


def _from_schedule(records: Records, arrival_ns: Int64) -> Floats:
    """Empty unless all successful requests had a time to be sent at."""
    ok = records.ok
    if NEVER in records.scheduled_ns[ok]:
        return _NONE
    return _ms(arrival_ns - records.scheduled_ns)[ok]


def _decode_ms(records: Records) -> Floats:
    return _ms(records.last_token_ns - records.first_token_ns)


def _ms(ns: Int64) -> Floats:
    return ns / _NS_PER_MS
