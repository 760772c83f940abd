"""Tails and quantiles of Student's t distribution.

The functions of ``cython_special`` are those of ``scipy.special`` for single numbers, without the machinery for arrays
around them, which takes three times as long as the mathematics.
"""

from __future__ import annotations

from functools import lru_cache

from scipy.special.cython_special import stdtr, stdtrit


def sf(t: float, df: float) -> float:
    """P(T > t) for ``df`` degrees of freedom: ``stdtr(df, -t)`` by symmetry, exact far into the upper tail.

    Source: scipy.special.stdtr; equals ``scipy.stats.t.sf``.
    """
    return float(stdtr(float(df), -t))


def cdf(t: float, df: float) -> float:
    """P(T <= t) for ``df`` degrees of freedom; equals ``scipy.stats.t.cdf``."""
    return float(stdtr(float(df), t))


@lru_cache(maxsize=1024)
def isf(p: float, df: float) -> float:
    """The t with P(T > t) = p: ``-stdtrit(df, p)`` by symmetry; equals ``scipy.stats.t.isf``.

    Kept for the few levels and degrees of freedom that a session asks for again and again.
    """
    return -float(stdtrit(float(df), p))
