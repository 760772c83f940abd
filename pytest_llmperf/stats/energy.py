"""Where a series changes: E-divisive segmentation with a t test for its stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from pytest_llmperf.stats import student
from pytest_llmperf.stats.variance import mean, sum_of_squares

LEAST = 3
"""Values in a segment."""
WEAK = 10
"""How many times ``level`` a split may have while others are still looked for; a change that another one masks at
first passes so. In the end each change has ``level``."""


def change_points(values: Sequence[float], *, level: float, smallest: float) -> list[int]:
    """The indices at which a new mean begins, in order.

    The series is split where the energy distance of both parts is largest, and the parts again, while a t test of the
    two parts says so. Then the weakest split is taken back, one after another, until each one separates its neighbours
    with p <= ``level`` and a difference of ``smallest`` or more. Costs O(n^2) time a split. Source: Matteson and James
    2014 (E-divisive); the t test in place of a permutation test is Hunter's (Fleming et al., ICPE 2023).
    """
    points = _splits(list(values), 0, WEAK * level)
    while points:
        bounds = [0, *points, len(values)]
        parts = [values[start:end] for start, end in pairwise(bounds)]
        tests = [(shift_p(left, right), -abs(mean(right) - mean(left))) for left, right in pairwise(parts)]
        weakest = max(range(len(points)), key=lambda i: (-tests[i][1] < smallest, *tests[i]))
        p, minus_size = tests[weakest]
        if p <= level and -minus_size >= smallest:
            break
        del points[weakest]
    return points


def shift_p(left: Sequence[float], right: Sequence[float]) -> float:
    """Two-sided p of Student's t test for equal means; 0 where both sides are constant and differ."""
    df = len(left) + len(right) - 2
    pooled = (sum_of_squares(left) + sum_of_squares(right)) / df
    difference = abs(mean(left) - mean(right))
    if not pooled:
        return 0.0 if difference else 1.0
    return 2 * student.sf(difference / math.sqrt(pooled * (1 / len(left) + 1 / len(right))), df)


def _splits(values: list[float], offset: int, level: float) -> list[int]:
    if len(values) < 2 * LEAST:
        return []
    at = best_split(values)
    if shift_p(values[:at], values[at:]) > level:
        return []
    return [*_splits(values[:at], offset, level), offset + at, *_splits(values[at:], offset + at, level)]


def best_split(values: Sequence[float]) -> int:
    """The index with the largest ``mn/(m+n) (2 E|X-Y| - E|X-X'| - E|Y-Y'|)`` of the two sides; the first at ties."""
    n = len(values)
    rows = [math.fsum(abs(value - other) for other in values) for value in values]
    inside, best, at = 0.0, -math.inf, LEAST
    left_rows, total = 0.0, math.fsum(rows) / 2  # sums of distances: within the left, of its rows, within all
    for index, value in enumerate(values[: n - LEAST]):
        inside += math.fsum(abs(value - other) for other in values[:index])
        left_rows += rows[index]
        m, k = index + 1, n - index - 1
        if m < LEAST:
            continue
        cross = left_rows - 2 * inside
        outside = total - inside - cross
        energy = 2 * cross / (m * k) - 2 * inside / (m * (m - 1)) - 2 * outside / (k * (k - 1))
        statistic = m * k / n * energy
        if statistic > best:
            best, at = statistic, m
    return at
