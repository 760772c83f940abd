"""Cumulative throttle counters by their field numbers, which were changed between drivers: never trusted untried.

A wrong number gives another feature's value. So the numbers are tried against what ``nvidia-smi`` says by name, and
only a set that agrees in a value other than zero is believed: zeros agree with everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_llmperf.telemetry.nvml.session import Session

Family = Mapping[str, int]
"""Column of ``model.telemetry.Counters`` -> field number."""

SINCE_580: Family = {"sw_thermal_ns": 269, "hw_thermal_ns": 270, "power_brake_ns": 271}
BEFORE: Family = {"sw_thermal_ns": 251, "hw_thermal_ns": 252, "power_brake_ns": 253}
FAMILIES = (SINCE_580, BEFORE)

POWER_CAP, SYNC_BOOST = 74, 76
"""The same in every driver."""

_ASKED = (POWER_CAP, SYNC_BOOST, *(number for family in FAMILIES for number in family.values()))
_US = 1000
"""nvidia-smi rounds down to microseconds."""


def fields(nvml: Session, handle: Any) -> dict[str, int]:
    """Every number that may be a counter, with its value now, as far as the driver answers."""
    readings = nvml.fields(handle, [(number, 0) for number in _ASKED])
    return {
        str(number): reading.value
        for number, reading in zip(_ASKED, readings, strict=True)
        if reading.value is not None
    }


def calibrated(looks: Iterable[tuple[Mapping[str, int], Mapping[int, int]]]) -> Family | None:
    """The one family of numbers that agrees with nvidia-smi in every look, and in one of them in more than zeros.

    Args:
        looks: nanoseconds by name from nvidia-smi, and by field number from NVML, of one GPU at one time each.
    """
    seen = [(named, numbered) for named, numbered in looks if named]
    agreeing = [family for family in FAMILIES if all(_agree(family, *look) for look in seen)]
    proven = [family for family in agreeing if any(named.get(name) for named, _ in seen for name in family)]
    return proven[0] if len(proven) == 1 and seen else None


def _agree(family: Family, named: Mapping[str, int], numbered: Mapping[int, int]) -> bool:
    return all(
        number in numbered and numbered[number] // _US == named[name] // _US
        for name, number in family.items()
        if name in named
    )
