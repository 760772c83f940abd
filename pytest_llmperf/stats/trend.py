"""Least squares over runs in order of time: effects freed from a linear drift of the machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effect:
    """A difference with its standard error and degrees of freedom."""

    difference: float
    se: float
    df: int


def arm_effect(values: Sequence[float], arms: Sequence[int], times: Sequence[float]) -> Effect:
    """Least squares ``y = a + b arm + c time``: b with its standard error and n - 3 degrees of freedom.

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
    if len(set(times)) == 1:
        raise ValueError("all runs have the same place in time")
    try:
        return effect(values, [times, arms])
    except ValueError:
        raise ValueError("the arms follow each other so that a trend cannot be told from their difference") from None


def effect(values: Sequence[float], columns: Sequence[Sequence[float]]) -> Effect:
    """The coefficient of the last of ``columns`` in least squares on all of them and a constant.

    By partial regression (Frisch and Waugh 1933): ``b = sum(u y) / sum(u^2)`` where u is what the other columns leave
    of the last one, and ``se = s / sqrt(sum(u^2))`` with ``n - columns - 1`` degrees of freedom. Equals the coefficient
    of ``numpy.linalg.lstsq``.

    Raises:
        ValueError: no degree of freedom is left, or a column that the ones before it make up.
    """
    n = len(values)
    df = n - len(columns) - 1
    if df < 1:
        raise ValueError(f"{n} runs leave no degree of freedom beside {len(columns)} effects and a constant")
    basis: list[list[float]] = [[1.0] * n]
    for column in columns:
        left = _without(column, basis)
        if math.fsum(x * x for x in left) < n * 1e-12:
            raise ValueError("an effect cannot be told from those before it")
        basis.append(left)
    last = basis.pop()
    rest = _without(values, basis)
    own = math.fsum(x * x for x in last)
    difference = math.fsum(x * y for x, y in zip(last, rest, strict=True)) / own
    residual = math.fsum((y - difference * x) ** 2 for x, y in zip(last, rest, strict=True))
    return Effect(difference, math.sqrt(residual / df / own), df)


def _without(values: Sequence[float], basis: Sequence[Sequence[float]]) -> list[float]:
    """``values`` less their projections on columns that are orthogonal to each other."""
    left = [float(value) for value in values]
    for column in basis:
        slope = math.fsum(v * x for v, x in zip(left, column, strict=True)) / math.fsum(x * x for x in column)
        left = [v - slope * x for v, x in zip(left, column, strict=True)]
    return left
