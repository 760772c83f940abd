"""Two clusters of plain numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_llmperf.stats.variance import mean, sum_of_squares


@dataclass(frozen=True, slots=True)
class Halves:
    """The two-means clustering of numbers.

    Attributes:
        low, high: means.
        border: values above it are of the high cluster.
        separation: difference of the means over the pooled standard deviation within; infinite where there is none.
    """

    low: float
    high: float
    border: float
    separation: float


def halves(values: Sequence[float], least: int) -> Halves | None:
    """The split of the sorted values with the least squares within, at least ``least`` values a side; None for fewer.

    Exact in one dimension, where clusters are intervals. Source: Fisher 1958.
    """
    ordered = sorted(values)
    places = range(least, len(ordered) - least + 1)
    if not places:
        return None

    def within(at: int) -> float:
        return sum_of_squares(ordered[:at]) + sum_of_squares(ordered[at:])

    at = min(places, key=within)
    low, high, spread = mean(ordered[:at]), mean(ordered[at:]), math.sqrt(within(at) / max(1, len(ordered) - 2))
    if high <= low:
        return None
    border = (ordered[at - 1] + ordered[at]) / 2
    return Halves(low, high, border, (high - low) / spread if spread else math.inf)
