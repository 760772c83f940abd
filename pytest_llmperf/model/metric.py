"""A metric: what is measured, in which unit, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Group = Literal["throughput", "latency", "acceptance"]
GROUPS: tuple[Group, ...] = ("throughput", "latency", "acceptance")

Scale = Literal["ratio", "absolute"]
"""``ratio``: changes are judged in log, margins are shares. ``absolute``: both are in the metric's unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One row of the metric table (``metrics.definitions``).

    Attributes:
        name: the field's key name, statistic first, unit last (``p99_ttft_ms``).
        unit: as printed.
        better: the direction of an improvement.
        group: the item that judges it.
        scale: whether changes are shares or absolute differences.
        margin: the default loss that must not pass; a share, or in the unit when absolute.
        prior_cv: between-run coefficient of variation assumed while a baseline is small (share, or in the unit).
        formula: how one run's value comes about.
        timing: True when a slow client or a slow machine could move it; False for counts.
    """

    name: str
    unit: str
    better: Literal["higher", "lower"]
    group: Group
    margin: float
    prior_cv: float
    formula: str
    scale: Scale = "ratio"
    timing: bool = True
