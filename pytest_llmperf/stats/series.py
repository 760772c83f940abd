"""Values in order of time, and two of them side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from pytest_llmperf.stats.variance import mean, sum_of_squares


def autocorrelation(values: Sequence[float]) -> float | None:
    """Lag-1: ``sum (y_t - m)(y_(t+1) - m) / sum (y_t - m)^2``; None for fewer than four values, or without variance.

    Its expectation for n independent values is ``-1/n``. Source: Box and Jenkins 1976, 2.1.5.
    """
    if len(values) < 4:  # noqa: PLR2004
        return None
    centre, spread = mean(values), sum_of_squares(values)
    if not spread:
        return None
    return math.fsum((first - centre) * (second - centre) for first, second in pairwise(values)) / spread


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's; None for fewer than three pairs, or where a side is constant."""
    if len(first) < 3:  # noqa: PLR2004
        return None
    scale = math.sqrt(sum_of_squares(first)) * math.sqrt(sum_of_squares(second))
    if not scale:
        return None
    here, there = mean(first), mean(second)
    joint = math.fsum((x - here) * (y - there) for x, y in zip(first, second, strict=True))
    return min(1.0, max(-1.0, joint / scale))
