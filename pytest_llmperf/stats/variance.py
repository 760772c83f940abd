"""Variance of runs that come in sessions: between and within, their share, and shrinkage to a prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import chdtri, fdtri


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean, exactly rounded, so that the order of values never shows."""
    return math.fsum(values) / len(values)


def sum_of_squares(values: Sequence[float]) -> float:
    """Sum of squared deviations from the mean."""
    centre = mean(values)
    return math.fsum((value - centre) ** 2 for value in values)


@dataclass(frozen=True, slots=True)
class Sessions:
    """Runs grouped by session, reduced to what the comparison needs.

    Attributes:
        sizes: runs in each session.
        mean: mean of the session means, so that a session with many runs weighs no more than another.
        mean_of_runs: mean of all runs.
        variance_of_means: sample variance (ddof 1) of the session means, 0 for one session.
        within: pooled variance within sessions (MSW), 0 where no session has two runs.
        within_df: its degrees of freedom, N - B.
        between: mean square between sessions (MSB), weighted by size; 0 for one session.
    """

    sizes: tuple[int, ...]
    mean: float
    mean_of_runs: float
    variance_of_means: float
    within: float
    within_df: int
    between: float

    @property
    def count(self) -> int:
        """B, the number of sessions."""
        return len(self.sizes)

    @property
    def runs_inverse(self) -> float:
        """``1/r``: mean over sessions of 1 / runs, which is exact for unequal sessions."""
        if not self.within_df:
            return 1.0
        return math.fsum(1 / size for size in self.sizes) / len(self.sizes)

    @property
    def typical(self) -> float:
        """``n0 = (N - sum n_i^2 / N) / (B - 1)``, the runs of a typical session; for two sessions or more."""
        total = sum(self.sizes)
        return (total - sum(size * size for size in self.sizes) / total) / (self.count - 1)

    @property
    def variance(self) -> float:
        """Variance of one run, ``sT^2 = v_B + (1 - 1/r) MSW``, with B - 1 degrees of freedom.

        Session means vary by ``s_b^2 + s_w^2 / r``; the second term restores the rest of one run's own variance.
        """
        return self.variance_of_means + (1 - self.runs_inverse) * self.within


def sessions(groups: Sequence[Sequence[float]]) -> Sessions:
    """The one-way layout of values grouped by session; every group has at least one value."""
    sizes = tuple(map(len, groups))
    total, count = sum(sizes), len(groups)
    if total == count:  # one run a session: nothing is within, and both means are one
        values = [group[0] for group in groups]
        centre = mean(values)
        between = math.fsum((value - centre) ** 2 for value in values) / (count - 1) if count > 1 else 0.0
        return Sessions(sizes, centre, centre, between, 0.0, 0, between)
    means = [mean(group) for group in groups]
    within_df = total - count
    grand = math.fsum(size * centre for size, centre in zip(sizes, means, strict=True)) / total
    spread = math.fsum(size * (centre - grand) ** 2 for size, centre in zip(sizes, means, strict=True))
    return Sessions(
        sizes=sizes,
        mean=mean(means),
        mean_of_runs=mean([value for group in groups for value in group]),
        variance_of_means=sum_of_squares(means) / (count - 1) if count > 1 else 0.0,
        within=math.fsum(sum_of_squares(group) for group in groups if len(group) > 1) / within_df,
        within_df=within_df,
        between=spread / (count - 1) if count > 1 else 0.0,
    )


def session_share(layout: Sessions) -> float:
    """rho: the session's share of one run's variance, as one-way intraclass correlation; nan without any variance.

    ``ICC(1) = (MSB - MSW) / (MSB + (n0 - 1) MSW)`` with ``n0`` runs in a typical session. May be
    negative. Source: Donner 1986, the ANOVA estimator; Shrout and Fleiss 1979 for equal groups.
    """
    scale = layout.between + (layout.typical - 1) * layout.within
    return (layout.between - layout.within) / scale if scale > 0 else math.nan


def session_share_interval(layout: Sessions, tail: float) -> tuple[float, float]:
    """Confidence limits of rho with ``tail`` beyond each, for normal effects; a layout with variance within or between.

    ``F = MSB / MSW`` over its quantiles: ``(F/F_u - 1) / (F/F_u + n0 - 1)``; exact for sessions of one size. Limits
    below 0 are 0, since a share of variance is none. Source: Searle 1971, chapter 9.9; Donner 1986.
    """
    if not layout.within:
        return 1.0, 1.0
    ratio, n0 = layout.between / layout.within, layout.typical
    upper = float(fdtri(layout.count - 1, layout.within_df, 1 - tail))
    lower = float(fdtri(layout.count - 1, layout.within_df, tail))
    low, high = ((ratio / bound - 1) / (ratio / bound + n0 - 1) for bound in (upper, lower))
    return max(0.0, low), max(0.0, high)


def upper_limit(variance: float, df: float, tail: float) -> float:
    """The upper confidence limit of a variance with ``tail`` above it: ``df s^2 / chi2_tail``, for normal values."""
    return df * variance / float(chdtri(df, 1 - tail))


def moderated(own: float, own_df: float, prior: float, prior_df: float) -> tuple[float, float]:
    """Variance shrunk towards a prior, and its degrees of freedom.

    ``s^2 = (d0 s0^2 + d s^2) / (d0 + d)`` with ``d0 + d`` degrees of freedom. Source: Smyth 2004 (limma). With the
    second sample's variance as prior this is the pooled variance of the two-sample t test.
    """
    df = own_df + prior_df
    return (prior_df * prior + own_df * own) / df, df


def error_of_difference(variance: float, rho: float, candidate: Sessions, reference: Sessions) -> float:
    """Standard error of (mean of all candidate runs) - (mean of reference session means).

    ``se = s sqrt(rho/S + (1 - rho)/n + (rho + (1 - rho)/r)/B)``; S = n^2 / sum n_i^2 is the number of candidate
    sessions when they are equal, and less when they are not. rho = 0 with one run a session gives the
    ``s sqrt(1/n + 1/B)`` of the two-sample t test.
    """
    runs = sum(candidate.sizes)
    clumped = sum(size * size for size in candidate.sizes) / runs**2
    here = rho * clumped + (1 - rho) / runs
    there = (rho + (1 - rho) * reference.runs_inverse) / reference.count
    return math.sqrt(variance * (here + there))
