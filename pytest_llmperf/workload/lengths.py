"""Lengths: how many tokens each request of a run has."""

from __future__ import annotations

from random import Random
from statistics import NormalDist

from pytest_llmperf.model.suite import Lengths


def draw_lengths(wanted: int | Lengths, count: int, rng: Random) -> list[int]:
    """``count`` lengths.

    By inversion of the distribution function, one ``Random.random`` each: it alone is promised to give the same
    numbers in every version of Python. A normal distribution is cut off at its bounds, so that none of its values pile
    up there.
    """
    if isinstance(wanted, int):
        return [wanted] * count
    if wanted.mean is None or wanted.stdev is None:
        return [wanted.min + int(rng.random() * (wanted.max - wanted.min + 1)) for _ in range(count)]
    normal = NormalDist(wanted.mean, wanted.stdev)
    low, high = normal.cdf(wanted.min - 0.5), normal.cdf(wanted.max + 0.5)
    return [_inverse(normal, low + rng.random() * (high - low), wanted) for _ in range(count)]


def _inverse(normal: NormalDist, share: float, wanted: Lengths) -> int:
    if not 0 < share < 1:  # bounds so far from the mean that floats cannot tell them from it
        return wanted.min if share <= 0 else wanted.max
    return min(max(round(normal.inv_cdf(share)), wanted.min), wanted.max)
