"""A reading: what a machine answered when it was asked for one fact, or why there is no answer.

Doubt is data. A fact that cannot be read is never 0, "off" or "fine": it carries the reason, and the checks say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Never, TypeVar

T_co = TypeVar("T_co", covariant=True)
Other = TypeVar("Other")


class Answer(StrEnum):
    """How a question ended."""

    KNOWN = "known"
    UNSUPPORTED = "unsupported"
    """The device, the driver, the library or the kernel does not have it."""
    NOT_PERMITTED = "not-permitted"
    """It is there, and this user may not read it."""
    FAILED = "failed"
    """The device answered that it is broken: lost, or in need of a reset."""
    UNKNOWN = "unknown"
    """Anything else: an answer that nobody understands, a timeout, a question never asked."""


@dataclass(frozen=True, slots=True)
class Reading(Generic[T_co]):
    """One fact.

    Attributes:
        value: None unless ``answer`` is KNOWN.
        evidence: the call or the file, and what it returned, as text.
    """

    value: T_co | None = None
    answer: Answer = Answer.KNOWN
    evidence: str = ""

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    def to(self, change: Callable[[T_co], Other]) -> Reading[Other]:
        """The same reading of a value derived from this one; what is not known stays so, with its reason."""
        if self.value is None:
            return Reading(None, self.answer, self.evidence)
        return Reading(change(self.value), self.answer, self.evidence)


def lacking(answer: Answer, evidence: str) -> Reading[Never]:
    """A fact that is not known, and why."""
    return Reading(None, answer, evidence)


NOT_READ: Reading[Never] = Reading(None, Answer.UNKNOWN, "not read")
"""Of a fact that nobody asked for: an older recording, a part of a machine that was made up for a test."""
