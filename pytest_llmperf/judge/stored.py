"""A candidate against a stored baseline: moderated variance with a class prior, and the session's share of the noise.

Formulae and constants: docs/verdicts.md. Without the session term, repeats in one session give 12 to 26 % false alarms
at a nominal 5 %.
"""

from __future__ import annotations

import math

from pytest_llmperf.judge.evidence import Evidence
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.stats import variance
from pytest_llmperf.stats.variance import Sessions

PRIOR_DF = 4
"""d0, the degrees of freedom that the class prior is worth."""
SMALLEST_SD = 0.003
"""Runs of one build never agree better than 0.3 %, whatever a baseline says; ratio metrics only."""
ASSUMED_SHARE = 0.5
"""rho, the session's share of the variance, while a baseline cannot tell it."""
SHARE_BOUNDS = (0.3, 0.95)
"""An estimate of rho is believed no further than this; from ten sessions of two runs its error is about 0.2."""
SHARE_SESSIONS = 10
SHARE_WITHIN_DF = 10
ENOUGH_SESSIONS = 10
"""A baseline of fewer sessions is small: its verdicts are provisional."""


def share(baseline: Sessions) -> float:
    """rho: estimated from ten sessions on with ten degrees of freedom within, else assumed."""
    if baseline.count < SHARE_SESSIONS or baseline.within_df < SHARE_WITHIN_DF:
        return ASSUMED_SHARE
    estimate = variance.session_share(baseline)
    if math.isnan(estimate):
        return ASSUMED_SHARE
    low, high = SHARE_BOUNDS
    return min(max(estimate, low), high)


def compare(gate: Gate, baseline: Sessions, candidate: Sessions) -> Evidence:
    """The evidence from values on the scale of judgement, grouped by session."""
    spread, df = _variance(gate, baseline)
    se = variance.error_of_difference(spread, share(baseline), candidate, baseline)
    return Evidence(candidate.mean_of_runs - baseline.mean, se, df)


def against_constant(gate: Gate, constant: float, candidate: Sessions) -> Evidence:
    """The evidence against a number without noise, on the scale of judgement; the class prior is all that is known."""
    prior = gate.metric.prior_cv if gate.cv is None else gate.cv
    runs = sum(candidate.sizes)
    clumped = sum(size * size for size in candidate.sizes) / runs**2
    se = prior * math.sqrt(ASSUMED_SHARE * clumped + (1 - ASSUMED_SHARE) / runs)
    return Evidence(candidate.mean_of_runs - constant, se, PRIOR_DF)


def visible_with_enough_sessions(gate: Gate, baseline: Sessions, candidate: Sessions) -> float:
    """``Evidence.visible`` as it would be if the baseline had ``ENOUGH_SESSIONS`` sessions like those it has."""
    spread, _ = _variance(gate, baseline)
    size = max(1, round(1 / baseline.runs_inverse))
    larger = variance.sessions([[0.0] * size] * ENOUGH_SESSIONS)
    se = variance.error_of_difference(spread, share(baseline), candidate, larger)
    return Evidence(0.0, se, PRIOR_DF + ENOUGH_SESSIONS - 1).visible


def _variance(gate: Gate, baseline: Sessions) -> tuple[float, float]:
    """``s^2`` of one run and its degrees of freedom, d0 + B - 1."""
    prior = gate.metric.prior_cv if gate.cv is None else gate.cv
    spread, df = variance.moderated(baseline.variance, baseline.count - 1, prior**2, PRIOR_DF)
    if baseline.count == 1:  # which says nothing of sessions, but a run varies at least as much as runs of one do
        spread = max(spread, baseline.within)
    return (max(spread, SMALLEST_SD**2) if gate.metric.scale == "ratio" else spread), df
