"""The formulas behind the metric table; each gives one number of one run.

Latencies are taken over successful requests, in milliseconds; percentiles interpolate linearly. What cannot be
computed is absent: an unknown token count, an empty sample, and a time of zero, which means that the client's stamps
could not tell two events apart and which no ratio can be taken of.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import numpy as np
import numpy.typing as npt

from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.records import NEVER, Int64, Records
from pytest_llmperf.model.run import Acceptance

Floats = npt.NDArray[np.float64]

_NS_PER_MS = 1e6
_NS_PER_S = 1e9

_STATISTICS: dict[str, Callable[[Floats], float]] = {
    "mean": lambda sample: float(np.mean(sample)),
    "median": lambda sample: float(np.percentile(sample, 50)),
    "p90": lambda sample: float(np.percentile(sample, 90)),
    "p95": lambda sample: float(np.percentile(sample, 95)),
    "p99": lambda sample: float(np.percentile(sample, 99)),
}


def compute(records: Records, window_ns: tuple[int, int], acceptance: Acceptance | None) -> dict[str, float]:
    """Every metric of ``definitions.METRICS`` that this run has a value for, by name.

    Args:
        records: what happened to each request; failed ones count in no metric.
        window_ns: first send to end of the last stream, ramp-up and drain included.
        acceptance: counts of speculation over the same window.
    """
    values = chain(_throughputs(records, window_ns).items(), _latencies(records).items(), _speculation(acceptance))
    return {name: float(value) for name, value in values if np.isfinite(value) and (value > 0 or _may_be_zero(name))}


def _may_be_zero(name: str) -> bool:
    """An acceptance rate of 0 is a finding; a latency or a throughput of 0 is a broken measurement."""
    return METRICS[name].scale == "absolute"


def _throughputs(records: Records, window_ns: tuple[int, int]) -> dict[str, float]:
    ok = records.ok
    window_s = (window_ns[1] - window_ns[0]) / _NS_PER_S
    if not ok.any() or window_s <= 0:
        return {}
    values: dict[str, float] = {"request_throughput": np.count_nonzero(ok) / window_s}
    output, sent = _total(records.output_tokens[ok]), _total(records.input_tokens[ok])
    if output is not None:
        values["output_throughput"] = output / window_s
        values["tok_s_per_user"] = _mean(records.output_tokens[ok] / (_e2el_ms(records)[ok] / 1e3))
        values["decode_tok_s_per_user"] = _mean(1e3 / _tpot_ms(records))
    if output is not None and sent is not None:
        values["total_token_throughput"] = (sent + output) / window_s
    return values


def _latencies(records: Records) -> dict[str, float]:
    ok = records.ok
    samples = {
        "ttft": ((records.first_token_ns - records.sent_ns) / _NS_PER_MS)[ok],
        "tpot": _tpot_ms(records) if _total(records.output_tokens[ok]) is not None else np.empty(0),
        "itl": _itl_ms(records),
        "e2el": _e2el_ms(records)[ok],
    }
    return {
        f"{key}_{name}_ms": statistic(sample)
        for name, sample in samples.items()
        if len(sample)
        for key, statistic in _STATISTICS.items()
    }


def _speculation(acceptance: Acceptance | None) -> list[tuple[str, float]]:
    if acceptance is None or acceptance.steps == 0:
        return []
    values = [("acceptance_length", 1 + acceptance.accepted / acceptance.steps)]
    if acceptance.drafted:
        values.append(("acceptance_rate", acceptance.accepted / acceptance.drafted))
    return values


def _e2el_ms(records: Records) -> Floats:
    return (records.last_token_ns - records.sent_ns) / _NS_PER_MS


def _tpot_ms(records: Records) -> Floats:
    """Of successful requests with several tokens in several chunks: one chunk alone has no pace."""
    told = records.ok & (records.output_tokens > 1) & (records.last_token_ns > records.first_token_ns)
    decode_ms = (records.last_token_ns - records.first_token_ns)[told] / _NS_PER_MS
    tpot: Floats = decode_ms / (records.output_tokens[told] - 1)
    return tpot


def _itl_ms(records: Records) -> Floats:
    """Gaps between consecutive chunks of one request, successful requests pooled."""
    owner = np.repeat(np.arange(len(records)), np.diff(records.chunk_start))
    same_request = owner[1:] == owner[:-1]
    gaps: Floats = np.diff(records.chunk_ns)[same_request & records.ok[owner[1:]]] / _NS_PER_MS
    return gaps


def _total(tokens: Int64) -> int | None:
    """Sum of counts, None when one of them is unknown."""
    return None if (tokens == NEVER).any() else int(tokens.sum())


def _mean(sample: Floats) -> float:
    return float(np.mean(sample)) if len(sample) else float("nan")
