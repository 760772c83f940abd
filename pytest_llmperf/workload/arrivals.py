"""Arrivals: when the requests of an open loop are sent."""

from __future__ import annotations

import math
from itertools import accumulate
from random import Random


def poisson_arrivals_ns(count: int, rate: float, rng: Random) -> list[int]:
    """Send times of a Poisson process, nanoseconds after the start, ascending.

    Exponential gaps are summed and then stretched so that the last request falls on ``count / rate``: every run has
    the same length, whatever its seed. This is the rule of ``vllm bench serve`` at burstiness 1. Times are absolute,
    so a late send never delays the ones after it.
    """
    ends = list(accumulate(-math.log1p(-rng.random()) for _ in range(count)))
    stretch = count / rate / ends[-1]
    return [round(end * stretch * 1e9) for end in ends]
