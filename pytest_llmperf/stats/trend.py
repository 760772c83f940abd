"""The difference of two arms whose runs alternate in time, freed from a linear drift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_llmperf.stats.variance import mean


@dataclass(frozen=True, slots=True)
class Effect:
    """A difference with its standard error and degrees of freedom."""

    difference: float
    se: float
    df: int


def arm_effect(values: Sequence[float], arms: Sequence[int], times: Sequence[float]) -> Effect:
    """Least squares ``y = a + b arm + c time``: b with its standard error and n - 3 degrees of freedom.

    By partial regression (Frisch and Waugh 1933): ``b = sum(u y) / sum(u^2)`` where u is what the trend leaves of the
    arm indicator, and ``se = s / sqrt(sum(u^2))``. Equals the arm's coefficient of ``numpy.linalg.lstsq``.

    Args:
        values: one per run.
        arms: 1 for the candidate, 0 for the reference.
        times: position in time, on one axis for both arms.

    Raises:
        ValueError: fewer than four runs, or arm and time that cannot be told apart.
    """
    n = len(values)
    if n < 4:  # noqa: PLR2004
        raise ValueError(f"{n} runs cannot show a difference, a trend and their noise; four can")
    time = _centred(times)
    if not any(time):
        raise ValueError("all runs have the same place in time")
    arm = _without(_centred([float(arm) for arm in arms]), time)
    own = math.fsum(u * u for u in arm)
    if own < n * 1e-12:
        raise ValueError("the arms follow each other so that a trend cannot be told from their difference")
    rest = _without(_centred(values), time)
    difference = math.fsum(u * y for u, y in zip(arm, rest, strict=True)) / own
    residual = math.fsum((y - difference * u) ** 2 for u, y in zip(arm, rest, strict=True))
    return Effect(difference, math.sqrt(residual / (n - 3) / own), n - 3)


def _centred(values: Sequence[float]) -> list[float]:
    centre = mean(values)
    return [value - centre for value in values]


def _without(values: Sequence[float], time: Sequence[float]) -> list[float]:
    """``values`` less their projection on ``time``; both are centred."""
    slope = math.fsum(v * t for v, t in zip(values, time, strict=True)) / math.fsum(t * t for t in time)
    return [v - slope * t for v, t in zip(values, time, strict=True)]
