"""A finding: one fact about the machine, the engine, the client or the data, and whether it is as it must be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Status(StrEnum):
    """What a check found out."""

    PASS = "pass"  # noqa: S105 (no password)
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    AT_START = "at start"
    """Needs the live engine, which was not started."""


Policy = Literal["require", "warn", "record"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of one check.

    Attributes:
        check: its name.
        policy: what a failure means: ``require`` makes metrics INVALID, ``warn`` shows it, ``record`` stores it.
        value: as read, for people.
        expected: what would be right.
        evidence: where the value came from.
        remedy: a command or a sentence that mends it.
        metrics: the metrics that a failure invalidates; None for all of them.
    """

    check: str
    status: Status
    policy: Policy
    value: str = ""
    expected: str = ""
    evidence: str = ""
    remedy: str = ""
    metrics: frozenset[str] | None = None

    @property
    def invalidates(self) -> bool:
        """True when metrics must not be judged because of this."""
        return self.policy == "require" and self.status is Status.FAIL

    def __str__(self) -> str:
        text = f"{self.check}: {self.value or self.status}"
        if self.expected and self.status is not Status.PASS:
            text += f" (expected {self.expected})"
        return f"{text}; {self.remedy}" if self.remedy and self.status is Status.FAIL else text
