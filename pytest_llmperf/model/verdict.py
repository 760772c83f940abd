"""A verdict: what the judge says of one gated metric, with the evidence for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Word(StrEnum):
    """The closed list of outcomes, each its own word wherever results are shown."""

    PASSED = "PASSED"
    IMPROVED = "IMPROVED"
    REGRESSED = "REGRESSED"
    FAILED = "FAILED"
    INVALID = "INVALID"
    NO_BASELINE = "NO BASELINE"
    INCONCLUSIVE = "INCONCLUSIVE"
    SKIPPED = "SKIPPED"


SEVERITY: tuple[Word, ...] = (
    Word.FAILED, Word.INVALID, Word.REGRESSED, Word.NO_BASELINE, Word.INCONCLUSIVE, Word.SKIPPED, Word.IMPROVED,
    Word.PASSED,
)  # fmt: skip
"""Worst first: an item with several metrics shows the first of these that any of them has."""


def worst(words: Iterable[Word]) -> Word:
    """The word that stands for several; PASSED for none."""
    found = set(words)
    return next((word for word in SEVERITY if word in found), Word.PASSED)


BASELINE = "baseline"
RECENT = "recent sessions"
"""The two stored references, as ``Verdict.against`` names them; no arm has a space in its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One metric of one case, judged.

    Changes are signed as measured (+ is more) and are shares for ratio metrics, in the unit for absolute ones.

    Attributes:
        metric: name.
        word: the outcome.
        margin: the gate's margin.
        at_least: the gate's, where it has one.
        reference: mean of the reference on the metric's own scale; None without one.
        measured: mean of the candidate; None when nothing could be measured.
        change: candidate against reference.
        interval: 90 % confidence interval of ``change``.
        p_fail: p of "no worse than the reference" (adjusted for the case's family where there is one).
        p_pass: p of "worse by the margin or more".
        smallest_visible: the smallest change that this comparison would have caught in four of five cases.
        runs: candidate runs.
        reference_runs: reference runs.
        reference_sessions: reference sessions.
        against: ``BASELINE``, ``RECENT``, or the arm it was compared with.
        cause: why it is INCONCLUSIVE, INVALID or NO BASELINE.
        confirmation: change seen after a fresh start; None when none was measured.
        calibrated: whether the metric's noise is stored with the baseline; None where no stored noise goes in.
        quarantine: why, by whom and until when its red does not count; "" where it does.
    """

    metric: str
    word: Word
    margin: float
    at_least: float | None = None
    reference: float | None = None
    measured: float | None = None
    change: float | None = None
    interval: tuple[float, float] | None = None
    p_fail: float | None = None
    p_pass: float | None = None
    smallest_visible: float | None = None
    runs: int = 0
    reference_runs: int = 0
    reference_sessions: int = 0
    against: str = BASELINE
    cause: str = ""
    confirmation: float | None = None
    calibrated: bool | None = None
    quarantine: str = ""
