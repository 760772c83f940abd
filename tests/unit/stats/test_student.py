"""Tails of the t distribution against scipy.stats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_llmperf.stats import student


@given(t=st.floats(-60, 60), df=st.floats(1, 500))
def test_tails_agree_with_scipy(t: float, df: float) -> None:
    assert student.sf(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-9, abs=1e-300)
    assert student.cdf(t, df) == pytest.approx(stats.t.cdf(t, df), rel=1e-9, abs=1e-300)


@given(p=st.floats(1e-6, 1 - 1e-6), df=st.floats(1, 500))
def test_the_quantile_inverts_the_tail(p: float, df: float) -> None:
    assert student.isf(p, df) == pytest.approx(stats.t.isf(p, df), rel=1e-7, abs=1e-9)
    assert student.sf(student.isf(p, df), df) == pytest.approx(p, rel=1e-7)
