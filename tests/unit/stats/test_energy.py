"""Where a series changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_llmperf.stats.energy import best_split, change_points, shift_p

VALUES = st.lists(st.integers(-50, 50).map(lambda x: x / 8), min_size=6, max_size=30)


def energy_distance(left: list[float], right: list[float]) -> float:
    m, k = len(left), len(right)
    cross = sum(abs(x - y) for x in left for y in right)
    within = [sum(abs(x - y) for i, x in enumerate(part) for y in part[:i]) for part in (left, right)]
    distance = 2 * cross / (m * k) - 2 * within[0] / (m * (m - 1)) - 2 * within[1] / (k * (k - 1))
    return m * k / (m + k) * distance


@given(values=VALUES)
def test_the_best_split_has_the_largest_energy_distance(values: list[float]) -> None:
    found = {at: energy_distance(values[:at], values[at:]) for at in range(3, len(values) - 2)}
    assert found[best_split(values)] == pytest.approx(max(found.values()), rel=1e-9, abs=1e-9)


@given(
    left=st.lists(st.floats(-5, 5), min_size=3, max_size=9), right=st.lists(st.floats(-5, 5), min_size=3, max_size=9)
)
def test_the_test_of_a_shift_is_students(left: list[float], right: list[float]) -> None:
    if min(np.var(left), np.var(right)) > 1e-6:
        assert shift_p(left, right) == pytest.approx(stats.ttest_ind(left, right).pvalue, rel=1e-9, abs=1e-12)


def test_sides_without_noise() -> None:
    assert shift_p([1.0] * 3, [2.0] * 3) == 0.0
    assert shift_p([1.0] * 3, [1.0] * 3) == 1.0


@pytest.mark.parametrize(
    ("levels", "points"),
    [
        ([0.0] * 30, []),
        ([0.0] * 15 + [1.0] * 15, [15]),
        ([0.0] * 10 + [1.0] * 10 + [0.0] * 10, [10, 20]),
        ([0.0] * 10 + [1.0] * 10 + [2.0] * 10, [10, 20]),
        ([0.0] * 27 + [1.0] * 3, [27]),
        ([0.0] * 29 + [1.0], []),
        ([0.0] * 15 + [0.2] * 15, []),
        ([0.0] * 5, []),
        ([], []),
    ],
    ids=["flat", "a step", "an excursion", "stairs", "three nights", "one night", "too small", "too short", "empty"],
)
def test_levels_are_found_where_they_begin(levels: list[float], points: list[int]) -> None:
    ripple = [0.05 * (-1) ** i for i in range(len(levels))]
    values = [level + r for level, r in zip(levels, ripple, strict=True)]
    assert change_points(values, level=0.001, smallest=0.5) == points


@given(values=VALUES, shift=st.floats(-3, 3), factor=st.sampled_from([0.5, 2.0, 8.0]))
def test_where_it_changes_is_a_matter_of_shape(values: list[float], shift: float, factor: float) -> None:
    points = change_points(values, level=0.001, smallest=0.0)
    assert change_points([factor * value for value in values], level=0.001, smallest=0.0) == points
    assert all(second - first >= 3 for first, second in zip([0, *points], [*points, len(values)], strict=True))
