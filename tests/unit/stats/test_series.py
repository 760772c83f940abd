"""Values in order of time, and side by side; two clusters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.stats.clusters import halves
from pytest_llmperf.stats.series import autocorrelation, correlation

VALUES = st.lists(st.integers(-1000, 1000).map(lambda x: x / 16), min_size=4, max_size=20)


@given(pairs=st.lists(st.tuples(st.integers(-99, 99), st.integers(-99, 99)), min_size=3, max_size=20))
def test_the_correlation_is_numpys(pairs: list[tuple[int, int]]) -> None:
    first, second = ([float(value) for value in side] for side in zip(*pairs, strict=True))
    found = correlation(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(np.corrcoef(first, second)[0, 1], abs=1e-9)


def test_two_points_have_no_correlation() -> None:
    assert correlation([1.0, 2.0], [3.0, 4.0]) is None


@given(values=VALUES)
def test_the_autocorrelation_is_within_bounds(values: list[float]) -> None:
    found = autocorrelation(values)
    assert (found is None) == (len(set(values)) == 1)
    assert found is None or -1 <= found <= 1


def test_a_wave_and_a_zigzag() -> None:
    wave = autocorrelation([math.sin(i / 8) for i in range(200)])
    zigzag = autocorrelation([(-1.0) ** i for i in range(50)])
    assert wave is not None
    assert zigzag is not None
    assert wave > 0.95
    assert zigzag == pytest.approx(-1, abs=0.05)
    assert autocorrelation([1.0, 2.0, 3.0]) is None


@given(values=VALUES)
def test_halves_have_the_least_squares_within(values: list[float]) -> None:
    found = halves(values, 2)
    if found is None:
        return
    ordered = sorted(values)

    def within(at: int) -> float:
        return float(at * np.var(ordered[:at]) + (len(ordered) - at) * np.var(ordered[at:]))

    best = min(within(at) for at in range(2, len(ordered) - 1))
    assert found.low < found.border < found.high or len(set(ordered)) < len(ordered)
    if len(set(ordered)) == len(ordered):
        assert within(sum(value <= found.border for value in ordered)) <= best + 1e-6


def test_too_few_or_equal_values_have_no_halves() -> None:
    assert halves([1.0, 2.0, 3.0], 2) is None
    assert halves([1.0] * 9, 2) is None


def test_one_cloud_is_not_apart() -> None:
    rng = np.random.default_rng(1)
    found = halves(list(rng.normal(size=700)), 2)
    assert found is not None
    assert found.separation == pytest.approx(2.65, abs=0.15)
