"""Quantities as people write them: durations with a unit, margins as shares, percentages or plain numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

DURATION = r"^[0-9]+(\.[0-9]+)? ?(ms|s|m|h)$"
PERCENTAGE = r"^[0-9]+(\.[0-9]+)? ?%$"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A margin or a variation as written; what it means depends on the metric's scale.

    Attributes:
        value: the number as written: 40 for ``40%``.
        percent: whether a % follows it.
    """

    value: float
    percent: bool

    @property
    def share(self) -> float:
        """As a part of one: 0.4 for ``40%`` and for ``0.4``."""
        return self.value / 100 if self.percent else self.value

    def __str__(self) -> str:
        return f"{self.value:g}%" if self.percent else f"{self.value:g}"


def seconds(value: object) -> float:
    """``500ms``, ``5s``, ``40m`` or ``2h`` in seconds.

    Raises:
        ValueError: no number with one of these units, or nothing at all.
    """
    if not (isinstance(value, str) and re.fullmatch(DURATION, value)):
        raise ValueError("must be a duration with a unit, such as 500ms, 5s, 40m or 2h")
    number = value.rstrip("msh ")
    duration = float(number) * _SECONDS[value[len(number) :].strip()]
    if not 0 < duration < math.inf:
        raise ValueError("must be longer than no time at all, and finite")
    return duration


def quantity(value: object) -> Quantity:
    """A number, or a percentage such as ``40%`` or ``3 %``.

    Raises:
        ValueError: neither, negative, or not finite.
    """
    if isinstance(value, str) and re.fullmatch(PERCENTAGE, value):
        number, percent = float(value.rstrip("% ")), True
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number, percent = float(value), False
    else:
        raise ValueError("must be a number or a percentage, such as 0.03 or 3%")
    if not 0 <= number < math.inf:
        raise ValueError("must be finite and not negative")
    return Quantity(number, percent)
