"""Failed requests: an exact binomial test of its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_llmperf.judge import failures, undecided
from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.verdict import Word

GATE = FailureGate()


@pytest.mark.parametrize(
    ("failed", "requests", "word"),
    [
        (0, 299, Word.PASSED),
        (0, 298, Word.INCONCLUSIVE),
        (0, 1, Word.INCONCLUSIVE),
        (1, 400, Word.INCONCLUSIVE),
        (1, 500, Word.PASSED),
        (5, 500, Word.FAILED),
        (1, 1, Word.FAILED),
        (500, 500, Word.FAILED),
        (20, 100_000, Word.PASSED),
        (100, 100_000, Word.PASSED),
        (150, 100_000, Word.FAILED),
    ],
)
def test_counts_get_their_word(failed: int, requests: int, word: Word) -> None:
    verdict = failures(GATE, failed, requests)
    assert verdict.word is word
    assert verdict.measured == failed / requests
    assert not undecided([verdict])  # no healthy night is measured longer for it


def test_the_evidence_is_that_of_the_exact_test() -> None:
    verdict = failures(GATE, 4, 1000, family=3)
    oracle = stats.binomtest(4, 1000, 0.001, alternative="greater")
    limits = stats.binomtest(4, 1000).proportion_ci(0.9, method="exact")
    assert verdict.p_fail == pytest.approx(3 * oracle.pvalue)
    assert verdict.p_pass == pytest.approx(stats.binom.cdf(4, 1000, 0.01))
    assert verdict.interval == pytest.approx((limits.low - 0.001, limits.high - 0.001))
    assert verdict.change == pytest.approx(0.003)


def test_the_cause_names_what_would_help() -> None:
    assert failures(GATE, 0, 100).cause == (
        "too few requests: 0 of 100 failed, and 299 without a failure would exclude 1 %"
    )
    assert failures(GATE, 3, 500).cause.startswith("borderline: 3 of 500 failed")
    assert failures(GATE, 50, 500).cause == "50 of 500 requests failed, 0.1 % may"


def test_what_may_not_fail_at_all_fails_with_one() -> None:
    none = FailureGate(allowed=0.0, limit=0.01)
    assert failures(none, 1, 5000).word is Word.FAILED
    assert failures(none, 0, 5000).word is Word.PASSED


def test_an_engine_that_fails_as_often_as_it_may_is_seldom_red() -> None:
    counts = np.random.default_rng(1).binomial(2000, 0.001, size=4000)
    assert np.mean([failures(GATE, int(k), 2000).word is Word.FAILED for k in counts]) <= 0.01 + 3 * 0.0016


def test_the_smallest_visible_rate_is_seen_in_four_of_five_nights() -> None:
    rate = failures(GATE, 0, 2000, family=8).smallest_visible
    assert rate is not None
    counts = np.random.default_rng(2).binomial(2000, rate, size=2000)
    red = np.mean([failures(GATE, int(k), 2000, family=8).word is Word.FAILED for k in counts])
    assert red == pytest.approx(0.8, abs=0.03)


@given(failed=st.integers(0, 200), more=st.integers(0, 200), family=st.integers(1, 40))
def test_more_failures_never_look_better(failed: int, more: int, family: int) -> None:
    rank = [Word.PASSED, Word.INCONCLUSIVE, Word.FAILED]
    first, second = (failures(GATE, k, 1000, family=family).word for k in (failed, failed + more))
    assert rank.index(second) >= rank.index(first)


@pytest.mark.parametrize(("failed", "requests"), [(-1, 10), (11, 10), (0, 0)])
def test_counts_that_cannot_be_are_refused(failed: int, requests: int) -> None:
    with pytest.raises(ValueError, match="need 0 <= failed <= requests"):
        failures(GATE, failed, requests)


def test_a_gate_whose_limit_is_allowed_is_refused() -> None:
    with pytest.raises(ValueError, match="allowed < limit"):
        FailureGate(allowed=0.01, limit=0.01)
