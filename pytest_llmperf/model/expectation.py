"""What a suite says of one check of the machine: how much it matters, what must be, and why."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_llmperf.model.finding import Policy

Expected = str | int | float | bool
"""What a suite file can say: one YAML scalar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One line of ``preconditions:``.

    Attributes:
        policy: None for the check's own.
        value: what must be there, in the check's words ("on", "4", "none"); None for the check's own rule.
        allow: names of programs that may use the GPUs, of ``foreign_processes`` and what depends on it.
        reason: why this machine or suite is another case, for whoever reads the report.
    """

    policy: Policy | None = None
    value: str | None = None
    allow: tuple[str, ...] = ()
    reason: str = ""


def as_text(value: Expected) -> str:
    """A scalar as it is written in YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)
