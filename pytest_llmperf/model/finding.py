"""A finding: one fact about the machine, the engine, the client or the data, and whether it is as it must be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Literal


class Status(StrEnum):
    """What a check found out."""

    PASS = "pass"  # noqa: S105 (no password)
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    """The machine cannot say it."""
    NOT_PERMITTED = "not-permitted"
    """It could, and this user may not ask."""
    UNKNOWN = "unknown"
    """It was asked, and what it said is of no use."""
    NOT_APPLICABLE = "n/a"
    """The question makes no sense here: the links between GPUs of a machine with one."""
    AT_START = "at start"
    """Needs the live engine, which was not started."""


Policy = Literal["require", "warn", "compare", "record", "ignore"]

_UNREAD = frozenset({Status.UNSUPPORTED, Status.NOT_PERMITTED, Status.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of one check.

    Attributes:
        check: its name.
        policy: what a failure means: ``require`` makes metrics INVALID, ``warn`` shows it, ``compare`` forbids to
            compare with the baseline, ``record`` stores it; ``ignore`` is not asked at all.
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

    @property
    def incomparable(self) -> bool:
        """True when the fact is another than the baseline's, so that a difference of the metrics says nothing."""
        return self.policy == "compare" and self.status is Status.FAIL

    @property
    def unverified(self) -> bool:
        """True when it must be so and could not be read: never a pass, and a failure where the suite is strict."""
        return self.policy == "require" and self.status in _UNREAD

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, as run.json and the reports have them."""
        metrics = None if self.metrics is None else sorted(self.metrics)
        return {**asdict(self), "status": str(self.status), "metrics": metrics}

    def __str__(self) -> str:
        text = f"{self.check}: {self.value or self.status}"
        if self.expected and self.status is not Status.PASS:
            text += f" (expected {self.expected})"
        return f"{text}; {self.remedy}" if self.remedy and self.status is Status.FAIL else text


def forbidden(findings: Iterable[Finding], metrics: Iterable[str], run: str) -> dict[str, str]:
    """The metrics that a run's findings forbid to judge, each with the last finding that does.

    A finding about all metrics is one about ``metrics``; another one names its own, whatever they are.
    """
    every, found = tuple(metrics), dict[str, str]()
    for finding in findings:
        if finding.invalidates:
            found |= dict.fromkeys(every if finding.metrics is None else finding.metrics, f"{finding} (run {run})")
    return found
