"""Arrivals: when the requests of an open loop are sent."""

from __future__ import annotations

import math
from itertools import accumulate
from random import Random

from pytest_llmperf.errors import UsageError

LONGEST_S = 24 * 3600.0
"""Of a schedule: whoever asks for a longer one has mistyped a rate."""


def poisson_arrivals_ns(count: int, rate: float, rng: Random) -> list[int]:
    """Send times of a Poisson process, nanoseconds after the start, ascending.

    Exponential gaps are summed and then stretched so that the last request falls on ``count / rate``: every run has
    the same length, whatever its seed. This is the rule of ``vllm bench serve`` at burstiness 1. Times are absolute,
    so a late send never delays the ones after it.

    Raises:
        UsageError: the last request would come more than ``LONGEST_S`` after the start.
    """
    length_s = count / rate
    if length_s > LONGEST_S:
        raise UsageError(
            f"request_rate: {rate:g}: {count} requests take {length_s:g} s; more than {LONGEST_S / 3600:g} h is no run"
        )
    ends = list(accumulate(-math.log1p(-rng.random()) for _ in range(count)))
    stretch = length_s / ends[-1]
    return [round(end * stretch * 1e9) for end in ends]
