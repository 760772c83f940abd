"""A quarantine: a case whose red is known, owned by somebody, and does not count until a day."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """One entry of ``quarantine:``. What it names is measured and judged as ever; only its red does not count.

    Attributes:
        cases: a case id, or a pattern of ids with ``*`` and ``?``.
        metrics: the metrics that it speaks of, () for all of them.
        owner: who is to end it.
        why: the reason.
        until: the last day on which it holds.
        line: where the suite file says it.
    """

    cases: str
    metrics: tuple[str, ...] = ()
    owner: str
    why: str
    until: date
    line: int = 0

    def holds(self, case: str, metric: str | None, on: date) -> bool:
        """Whether it excuses a metric of a case on a day; None for the case as a whole."""
        return on <= self.until and fnmatchcase(case, self.cases) and (not self.metrics or metric in self.metrics)

    def __str__(self) -> str:
        return f"quarantined until {self.until} by {self.owner}: {self.why}"


def excuse(entries: Iterable[Quarantine], case: str, metric: str | None, on: date) -> str:
    """What the first entry that holds says, "" where none does; see ``Quarantine.holds``."""
    return next((str(entry) for entry in entries if entry.holds(case, metric, on)), "")
