"""Least squares with a time trend against numpy and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_llmperf.stats.trend import arm_effect

ABBA = (0, 1, 1, 0, 0, 1, 1, 0)


@given(
    values=st.lists(st.floats(-100, 100), min_size=8, max_size=8),
    arms=st.permutations([0, 0, 0, 0, 1, 1, 1, 1]),
)
def test_agrees_with_lstsq(values: list[float], arms: list[int]) -> None:
    times = np.arange(8.0)
    design = np.column_stack([np.ones(8), arms, times])
    coefficients, *_ = np.linalg.lstsq(design, np.array(values), rcond=None)
    residual = np.array(values) - design @ coefficients
    variance = float(residual @ residual) / 5 * np.linalg.inv(design.T @ design)[1, 1]

    effect = arm_effect(values, arms, list(times))

    assert effect.df == 5
    assert effect.difference == pytest.approx(coefficients[1], abs=1e-9)
    assert effect.se == pytest.approx(np.sqrt(variance), abs=1e-7)


def test_agrees_with_linregress_after_partialling_out_time() -> None:
    rng = np.random.default_rng(5)
    y, arm, time = rng.normal(size=8), np.array(ABBA, float), np.arange(8.0)
    own = arm - stats.linregress(time, arm).slope * (time - time.mean()) - arm.mean()
    rest = y - stats.linregress(time, y).slope * (time - time.mean()) - y.mean()

    line = stats.linregress(own, rest)
    effect = arm_effect(list(y), list(ABBA), list(time))

    assert effect.difference == pytest.approx(line.slope, abs=1e-12)
    # linregress spends one degree of freedom less: it does not know of the trend.
    assert effect.se == pytest.approx(line.stderr * np.sqrt(6 / 5), abs=1e-12)


def test_a_linear_drift_leaves_the_difference_alone() -> None:
    drift = [0.5 * t + (2.0 if arm else 0.0) for t, arm in enumerate(ABBA)]
    effect = arm_effect(drift, ABBA, range(8))
    assert effect.difference == pytest.approx(2.0)
    assert effect.se == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("values", "arms", "times", "message"),
    [
        ([1.0, 2.0, 3.0], [0, 1, 0], [0.0, 1.0, 2.0], "3 runs"),
        ([1.0] * 4, [0, 1, 1, 0], [7.0] * 4, "same place in time"),
        ([1.0] * 4, [0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0], "follow each other"),
        ([1.0] * 4, [1, 1, 1, 1], [0.0, 1.0, 2.0, 3.0], "follow each other"),
    ],
)
def test_runs_that_cannot_tell_are_refused(
    values: list[float], arms: list[int], times: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        arm_effect(values, arms, times)
