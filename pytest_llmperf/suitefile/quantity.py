"""Quantities as people write them: durations with a unit, margins as shares, percentages or plain numbers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, TypeGuard

from pytest_llmperf.model.expectation import Expected
from pytest_llmperf.model.suite import MOST, Lengths

DURATION = r"^[0-9]+(\.[0-9]+)? ?(ms|s|m|h)$"
PERCENTAGE = r"^[0-9]+(\.[0-9]+)? ?%$"
DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
LENGTHS = "a whole number, {uniform: [MIN, MAX]} or {mean: M, stdev: S, min: MIN, max: MAX}"
LEAST_BURSTINESS = 0.01
"""Below it nearly all gaps are smaller than what a float can hold."""
MOST_TIMES = 100.0
"""Of ``at_least``: a larger one is a percentage by mistake."""
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
        return f"{self.value:.12g}%" if self.percent else f"{self.value:.12g}"


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


def margin(value: object) -> Quantity | Literal["auto"]:
    """A quantity, or ``auto``.

    Raises:
        ValueError: neither.
    """
    if value == "auto":
        return "auto"
    if isinstance(value, str) and not re.fullmatch(PERCENTAGE, value):
        raise ValueError("must be a number, a percentage such as 3%, or auto")
    return quantity(value)


def share(value: object) -> float:
    """A part of one: ``0.001`` or ``0.1%``.

    Raises:
        ValueError: no quantity, or more than all.
    """
    found = quantity(value)
    if found.share > 1:
        hint = f"; did you mean {found}%?" if not found.percent and found.value <= 100 else ""  # noqa: PLR2004
        raise ValueError(f"must be a share of at most 1 or a percentage of at most 100%{hint}")
    return found.share


def times(value: object) -> float:
    """How many times as good: ``1.1`` for a tenth better.

    Raises:
        ValueError: no such number, or one that nobody means.
    """
    if not _is_positive(value) or not 1 / MOST_TIMES <= value <= MOST_TIMES:
        raise ValueError(f"must say how many times as good, from {1 / MOST_TIMES:g} to {MOST_TIMES:g}: "
                         "1.1 is a tenth better")  # fmt: skip
    return float(value)


def day(value: object) -> date:
    """``2026-12-24``.

    Raises:
        ValueError: no such day.
    """
    try:
        if isinstance(value, str) and re.fullmatch(DAY, value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("must be a day, such as 2026-12-24")


def lengths(value: object) -> int | Lengths:
    """A number of tokens, ``{uniform: [A, B]}``, or ``{mean: M, stdev: S, min: A, max: B}``.

    Raises:
        ValueError: none of these, or one that makes no sense.
    """
    if _is_count(value):
        return value
    if not isinstance(value, dict):
        # No TypeError: pydantic takes only this one for a mistake.
        raise ValueError(_no_count(value))  # noqa: TRY004
    match value:
        case {"uniform": [low, high], **rest} if not rest and _is_count(low) and _is_count(high):
            found = Lengths(min=low, max=high)
        case {"mean": mean, "stdev": stdev, "min": low, "max": high, **rest} if (
            not rest and _is_positive(mean) and _is_positive(stdev) and _is_count(low) and _is_count(high)
        ):
            found = Lengths(min=low, max=high, mean=float(mean), stdev=float(stdev))
        case _:
            raise ValueError(f"must be {LENGTHS}, each at least 1 and at most {MOST}")
    if found.min > found.max or (found.mean is not None and not found.min <= found.mean <= found.max):
        raise ValueError(f"{found}: the smallest comes first and the mean lies between")
    return found


def scalar(value: object) -> Expected:
    """One value: text, a finite number, true or false.

    Raises:
        ValueError: anything else.
    """
    if isinstance(value, str | bool | int) and value != "":
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError("must be one value: text, a number, true or false")


def burstiness(value: object) -> float | Literal["constant"]:
    """A positive number, or ``constant``.

    Raises:
        ValueError: neither.
    """
    if value == "constant":
        return "constant"
    if not _is_positive(value) or not LEAST_BURSTINESS <= value <= MOST:
        raise ValueError(f"must be a number from {LEAST_BURSTINESS} to {MOST}, or constant")
    return float(value)


def shares(value: object) -> tuple[float, float]:
    """The smallest and the largest share: ``[0, 0.5]`` or ``[40%, 60%]``.

    Raises:
        ValueError: no two shares, or in the wrong order.
    """
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 (a pair)
        raise ValueError("must be two shares, such as [0.4, 0.6] or [40%, 60%]")
    low, high = (quantity(each).share for each in value)
    if not low <= high <= 1:
        raise ValueError("must be two shares of at most 100%, the smaller one first")
    return low, high


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: Any) -> TypeGuard[int]:
    return _is_whole(value) and 1 <= value <= MOST


def _no_count(value: Any) -> str:
    if not _is_whole(value):
        return "must be a whole number"
    return "must be at least 1" if value < 1 else f"must be at most {MOST}"


def _is_positive(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
