"""Arrivals: when the requests of an open loop are sent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from statistics import NormalDist

from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.suite import Ramp

LONGEST_S = 24 * 3600.0
"""Of a schedule: whoever asks for a longer one has mistyped a rate, or the speed of a trace."""

_NORMAL = NormalDist()


def arrivals_ns(count: int, rate: float, burstiness: float, rng: Random) -> list[int]:
    """Send times at a mean ``rate`` per second, nanoseconds after the start, ascending.

    Gaps are gamma distributed with shape ``burstiness``: 1 is a Poisson process, less comes in bursts, more is more
    even, and infinity sends at equal distances. The gaps are summed and then stretched so that the last request falls
    on ``count / rate``: every run has the same length, whatever its seed. These are the rules of ``vllm bench serve``.
    Times are absolute, so a late send never delays the ones after it.

    Raises:
        UsageError: the last request would come more than ``LONGEST_S`` after the start.
    """
    length_s = count / rate
    _check_length(f"request_rate: {rate:g}", count, length_s)
    return _stretched([_gap(burstiness, rng) for _ in range(count)], length_s)


def ramp_ns(count: int, ramp: Ramp, burstiness: float, rng: Random) -> list[int]:
    """Send times at a rate that goes from ``ramp.start`` to ``ramp.end``, request after request, as vLLM's does.

    Unlike vLLM's, the last request falls on the sum of the mean gaps, so that every run has the same length.

    Raises:
        UsageError: the last request would come more than ``LONGEST_S`` after the start.
    """
    means = [1 / rate for rate in _rates(count, ramp)]
    length_s = sum(means)
    _check_length(f"ramp: {ramp.start:g} to {ramp.end:g} requests a second", count, length_s)
    return _stretched([mean * _gap(burstiness, rng) for mean in means], length_s)


def replayed_ns(times_s: Sequence[float], speed: float) -> list[int]:
    """The send times of a trace, ``speed`` times as fast.

    Raises:
        UsageError: the last request would come more than ``LONGEST_S`` after the start.
    """
    _check_length(f"trace at speed {speed:g}", len(times_s), times_s[-1] / speed)
    return [round(time / speed * 1e9) for time in times_s]


def _rates(count: int, ramp: Ramp) -> list[float]:
    steps = [i / max(count - 1, 1) for i in range(count)]
    if ramp.shape == "linear":
        return [ramp.start + (ramp.end - ramp.start) * step for step in steps]
    return [ramp.start * (ramp.end / ramp.start) ** step for step in steps]


def _stretched(gaps: Sequence[float], length_s: float) -> list[int]:
    ends = list(accumulate(gaps))
    stretch = length_s / ends[-1]
    return [round(end * stretch * 1e9) for end in ends]


def _check_length(asked: str, count: int, length_s: float) -> None:
    if length_s > LONGEST_S:
        raise UsageError(f"{asked}: {count} requests take {length_s:g} s; more than {LONGEST_S / 3600:g} h is no run")


def _gap(shape: float, rng: Random) -> float:
    """One gap of mean 1. Only ``Random.random`` is used: it alone gives the same numbers in every version of Python."""
    if math.isinf(shape):
        return 1.0
    if shape == 1:
        return -math.log1p(-rng.random())
    if shape < 1:  # a gamma of shape + 1 times the power of a uniform
        return _gamma(shape + 1, rng) * math.pow(_uniform(rng), 1 / shape) / shape
    return _gamma(shape, rng) / shape


def _gamma(shape: float, rng: Random) -> float:
    """By Marsaglia and Tsang, ACM Trans. Math. Softw. 26 (2000) 363; ``shape`` at least 1."""
    d = shape - 1 / 3
    c = 1 / math.sqrt(9 * d)
    while True:  # ends: a draw is taken with a probability of more than 0.95
        x = _NORMAL.inv_cdf(_uniform(rng))
        v = (1 + c * x) ** 3
        if v > 0 and math.log(_uniform(rng)) < 0.5 * x * x + d * (1 - v + math.log(v)):
            return d * v


def _uniform(rng: Random) -> float:
    """More than 0 and less than 1."""
    return rng.random() or 2.0**-54
