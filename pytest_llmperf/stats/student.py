"""Tails and quantiles of Student's t distribution."""

from __future__ import annotations

from scipy.special import stdtr, stdtrit


def sf(t: float, df: float) -> float:
    """P(T > t) for ``df`` degrees of freedom: ``stdtr(df, -t)`` by symmetry, exact far into the upper tail.

    Source: scipy.special.stdtr; equals ``scipy.stats.t.sf``.
    """
    return float(stdtr(df, -t))


def cdf(t: float, df: float) -> float:
    """P(T <= t) for ``df`` degrees of freedom; equals ``scipy.stats.t.cdf``."""
    return float(stdtr(df, t))


def isf(p: float, df: float) -> float:
    """The t with P(T > t) = p: ``-stdtrit(df, p)`` by symmetry; equals ``scipy.stats.t.isf``."""
    return -float(stdtrit(df, p))
