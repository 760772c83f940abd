"""Exact binomial tails and limits."""

from __future__ import annotations

from scipy.special import betainc, betaincinv


def at_least(count: int, trials: int, share: float) -> float:
    """P(X >= count) of ``trials`` with probability ``share``: the regularized incomplete beta ``I_p(k, n - k + 1)``.

    Equals ``scipy.stats.binomtest(count, trials, share, "greater").pvalue``.
    """
    return 1.0 if count <= 0 else float(betainc(count, trials - count + 1, share))


def at_most(count: int, trials: int, share: float) -> float:
    """P(X <= count), as ``I_(1-p)(n - k, k + 1)``, exact far into the tail."""
    return 1.0 if count >= trials else float(betainc(trials - count, count + 1, 1 - share))


def limits(count: int, trials: int, tail: float) -> tuple[float, float]:
    """Confidence limits of the share with at most ``tail`` beyond each. Source: Clopper and Pearson 1934."""
    low = 0.0 if count <= 0 else float(betaincinv(count, trials - count + 1, tail))
    high = 1.0 if count >= trials else float(betaincinv(count + 1, trials - count, 1 - tail))
    return low, high


def fewest(trials: int, share: float, level: float) -> int:
    """The smallest count that ``at_least`` makes no more likely than ``level``; ``trials + 1`` where none does."""
    low, high = 0, trials + 1
    while low < high:
        middle = (low + high) // 2
        if at_least(middle, trials, share) <= level:
            high = middle
        else:
            low = middle + 1
    return low


def seen(count: int, trials: int, power: float) -> float:
    """The share with which ``count`` or more are seen with probability ``power``; 1 for counts that cannot be."""
    return 1.0 if count > trials else float(betaincinv(count, trials - count + 1, power))
