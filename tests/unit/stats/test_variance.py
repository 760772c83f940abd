"""Variance by session, its share, and its error, against numpy and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from pytest_llmperf.stats import student
from pytest_llmperf.stats.variance import error_of_difference, moderated, session_share, sessions

VALUES = st.lists(st.floats(-5, 5), min_size=2, max_size=12)


@given(reference=VALUES, candidate=VALUES)
def test_without_session_noise_and_prior_it_is_the_pooled_t_test(
    reference: list[float], candidate: list[float]
) -> None:
    there, here = sessions([[y] for y in reference]), sessions([[y] for y in candidate])
    assume(min(there.variance, here.variance) > 1e-6)  # scipy warns of precision loss among equal values
    pooled, df = moderated(there.variance, there.count - 1, here.variance, here.count - 1)
    se = error_of_difference(pooled, 0.0, here, there)
    oracle = stats.ttest_ind(candidate, reference, equal_var=True, alternative="greater")

    assert df == len(reference) + len(candidate) - 2
    assert student.sf((here.mean - there.mean) / se, df) == pytest.approx(oracle.pvalue, rel=1e-9, abs=1e-9)


def test_unequal_sessions_weigh_the_same() -> None:
    layout = sessions([[1.0, 1.0, 1.0, 1.0], [3.0]])
    assert layout.mean == 2.0
    assert layout.runs_inverse == (1 / 4 + 1) / 2


def test_one_session_of_one_run_has_no_variance_to_show() -> None:
    layout = sessions([[4.2]])
    assert (layout.variance, layout.within, layout.within_df, layout.between) == (0.0, 0.0, 0, 0.0)


def test_variance_of_a_run_is_recovered_from_sessions_of_unequal_size() -> None:
    rng = np.random.default_rng(7)
    estimates = []
    for _ in range(2000):
        groups = [list(rng.normal(0, 1) + rng.normal(0, 2, size=n)) for n in (1, 2, 3, 5)]
        estimates.append(sessions(groups).variance)
    assert np.mean(estimates) == pytest.approx(1 + 4, rel=0.05)


def test_session_share_is_the_anova_estimator() -> None:
    groups = [[9.0, 10.0, 8.0], [12.0, 14.0, 13.0], [5.0, 6.0, 4.0]]
    between = stats.f_oneway(*groups).statistic  # MSB / MSW
    assert session_share(sessions(groups)) == pytest.approx((between - 1) / (between + 2))


def test_session_share_finds_the_truth_in_unequal_sessions() -> None:
    rng = np.random.default_rng(3)
    groups = [list(rng.normal(0, math.sqrt(0.6)) + rng.normal(0, math.sqrt(0.4), size=n)) for n in (2, 3, 4) * 400]
    assert session_share(sessions(groups)) == pytest.approx(0.6, abs=0.05)


def test_session_share_of_equal_values_is_undefined() -> None:
    assert math.isnan(session_share(sessions([[1.0, 1.0], [1.0, 1.0]])))


def test_moderated_variance_weighs_by_degrees_of_freedom() -> None:
    assert moderated(own=2.0, own_df=6, prior=1.0, prior_df=4) == (1.6, 10)
    assert moderated(own=0.0, own_df=0, prior=1.0, prior_df=4) == (1.0, 4)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5, 0.95])
def test_error_of_the_difference_is_what_sampling_shows(rho: float) -> None:
    rng = np.random.default_rng(11)
    sizes, candidate_sizes = (1, 3, 2), (3, 1)

    def draw(layout: tuple[int, ...]) -> list[list[float]]:
        return [list(rng.normal(0, math.sqrt(rho)) + rng.normal(0, math.sqrt(1 - rho), size=n)) for n in layout]

    differences = []
    for _ in range(4000):
        there, here = draw(sizes), draw(candidate_sizes)
        differences.append(np.mean([y for group in here for y in group]) - sessions(there).mean)
    formula = error_of_difference(1.0, rho, sessions(draw(candidate_sizes)), sessions(draw(sizes)))
    assert np.std(differences) == pytest.approx(formula, rel=0.05)
