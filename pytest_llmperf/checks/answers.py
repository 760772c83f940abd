"""Answers: which values a suite may expect of a check, in the check's own words."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_llmperf.checks.conditions import VARIABLE
from pytest_llmperf.model.expectation import Expected

_SWITCH = ("on", "off")

WORDS: Mapping[str, tuple[str, ...]] = {
    "compute_mode": ("default", "exclusive", "prohibited"),
    "confidential_compute": _SWITCH,
    "ecc": _SWITCH,
    "foreign_processes": ("none",),
    "mig": _SWITCH,
    "numa_balancing": _SWITCH,
    "pdl": (*_SWITCH, "the engine's choice"),
    "persistence_mode": _SWITCH,
    "power_smoothing": _SWITCH,
    "transparent_hugepages": ("always", "madvise", "never"),
    "turbo": _SWITCH,
}
"""Checks that have one of a few answers."""

NUMBERS = frozenset({"vboost"})
TEXTS = frozenset({"clock_limits", "driver", "governor", "gpu_identity", "power_limit", "power_profile", "runtime"})
"""Checks whose answer is any text, as ``llmperf doctor`` shows it."""


def unusable(name: str, value: Expected) -> str:
    """Why a suite cannot expect this of a check, "" when it can; of a name that is no check's, nothing is known."""
    if name in WORDS:
        return "" if value in WORDS[name] else f"must be {' or '.join(WORDS[name])}"
    if name in NUMBERS:
        return "" if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else "must be a whole number"
    if name in TEXTS or name.startswith(VARIABLE):
        return "" if isinstance(value, str) else "must be text, as the check shows it; put it in quotes"
    return f"{name} takes no value: its rule is its own; write {name}: require"
