"""In effect: is what a suite asks of an engine what the engine says that it runs?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress

from pytest_llmperf.model.finding import Finding, Status

EXPECT = "expect."
"""Names of these checks begin so."""

_REMEDY = "read the engine's log: it may have switched it off because of another argument"


def in_effect(expected: Mapping[str, str], said: Mapping[str, str] | None) -> Iterator[Finding]:
    """One finding per expected name; what the engine does not say is unverified.

    Args:
        expected: ``Arm.expect``.
        said: the engine's resolved values; names of nested ones are dotted. None where it says nothing.
    """
    for name, asked in expected.items():
        values = sorted(_values(name, said or {}))
        known = len(values) == 1
        if known:
            status = Status.PASS if _same(asked, values[0]) else Status.FAIL
            value = f"asked {asked}, in effect {values[0]}"
        else:
            status = Status.UNSUPPORTED if said is None else Status.UNKNOWN
            value = f"asked {asked}; {_doubt(said, values)}"
        yield Finding(
            check=f"{EXPECT}{name}",
            status=status,
            policy="require",
            value=value,
            expected=asked,
            evidence="what the running engine says of itself",
            remedy=_REMEDY if known else "",
        )


def _doubt(said: Mapping[str, str] | None, values: list[str]) -> str:
    if said is None:
        return "the engine does not say what is in effect"
    return f"several parts of the engine say {' and '.join(values)}" if values else "the engine says nothing of it"


def _values(name: str, said: Mapping[str, str]) -> set[str]:
    """The value of this name, or those of nested names that end so."""
    if name in said:
        return {said[name]}
    return {value for key, value in said.items() if key.endswith(f".{name}")}


def _same(asked: str, found: str) -> bool:
    """Equal as text in any case, or as numbers."""
    if asked.lower() == found.lower():
        return True
    with suppress(ValueError):
        return math.isclose(float(asked), float(found), rel_tol=1e-9)
    return False
