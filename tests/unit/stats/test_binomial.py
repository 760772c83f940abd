"""Binomial tails and limits, against scipy.stats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_llmperf.stats import binomial

COUNTS = st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
SHARES = st.floats(1e-4, 0.999)


@given(counts=COUNTS, share=SHARES)
def test_the_tails_are_scipys(counts: tuple[int, int], share: float) -> None:
    count, trials = counts
    law = stats.binom(trials, share)
    assert binomial.at_least(count, trials, share) == pytest.approx(law.sf(count - 1), rel=1e-6, abs=1e-12)
    assert binomial.at_most(count, trials, share) == pytest.approx(law.cdf(count), rel=1e-6, abs=1e-12)


@given(counts=COUNTS)
def test_the_limits_are_those_of_clopper_and_pearson(counts: tuple[int, int]) -> None:
    oracle = stats.binomtest(*counts).proportion_ci(0.9, method="exact")
    assert binomial.limits(*counts, 0.05) == pytest.approx((oracle.low, oracle.high), rel=1e-6, abs=1e-9)


@given(trials=st.integers(1, 3000), share=SHARES, level=st.floats(1e-6, 0.5))
def test_the_fewest_that_show_more_are_the_fewest(trials: int, share: float, level: float) -> None:
    count = binomial.fewest(trials, share, level)
    assert count == trials + 1 or binomial.at_least(count, trials, share) <= level
    assert binomial.at_least(count - 1, trials, share) > level


@given(counts=COUNTS, power=st.floats(0.05, 0.99))
def test_what_is_seen_is_seen_with_that_power(counts: tuple[int, int], power: float) -> None:
    count, trials = max(counts[0], 1), counts[1]
    assert binomial.at_least(count, trials, binomial.seen(count, trials, power)) == pytest.approx(power, rel=1e-6)
    assert binomial.seen(trials + 1, trials, power) == 1.0
