"""Benjamini-Hochberg against scipy.stats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from pytest_llmperf.stats.multiplicity import benjamini_hochberg

P = st.floats(0, 1)


@given(st.lists(P, min_size=1, max_size=40))
def test_agrees_with_scipy(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(list(false_discovery_control(p, method="bh")), rel=1e-12, abs=1e-300)


@given(st.lists(P, min_size=1, max_size=12).flatmap(lambda p: st.tuples(st.just(p), st.permutations(range(len(p))))))
def test_the_order_of_tests_does_not_matter(drawn: tuple[list[float], list[int]]) -> None:
    p, order = drawn
    assert benjamini_hochberg([p[i] for i in order]) == [benjamini_hochberg(p)[i] for i in order]


def test_a_family_of_none_and_of_one() -> None:
    assert benjamini_hochberg([]) == []
    assert benjamini_hochberg([0.03]) == [0.03]
