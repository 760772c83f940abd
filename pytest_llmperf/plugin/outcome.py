"""Verdicts as pytest outcomes: which word an item shows, in which phase it is raised, and how it is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pytest_llmperf.model.verdict import Word

ERRORS = frozenset({Word.INVALID, Word.NO_BASELINE})
"""Raised in setup, so that JUnit writes <error>: nothing is known about the engine's speed."""

_CATEGORY: dict[Word, tuple[str, str, dict[str, bool]]] = {
    Word.PASSED: ("passed", ".", {"green": True}),
    Word.IMPROVED: ("passed", "+", {"green": True}),
    Word.REGRESSED: ("failed", "R", {"red": True}),
    Word.FAILED: ("failed", "F", {"red": True}),
    Word.INVALID: ("error", "E", {"red": True}),
    Word.NO_BASELINE: ("error", "E", {"red": True}),
    Word.INCONCLUSIVE: ("inconclusive", "?", {"yellow": True}),
    Word.SKIPPED: ("skipped", "s", {"yellow": True}),
}

WORD = pytest.StashKey[Word]()
RESULT = pytest.StashKey[str]()


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """What one item says: its word, the text behind it, and whether it turns the session red."""

    word: Word
    text: str
    red: bool


class OutcomeError(Exception):
    """A red outcome; its text is shown instead of a traceback."""


def raise_errors(outcome: ItemOutcome) -> None:
    """In setup: errors, and everything that is reported as skipped."""
    if outcome.red and outcome.word in ERRORS:
        raise OutcomeError(outcome.text)
    if not outcome.red and outcome.word not in {Word.PASSED, Word.IMPROVED}:
        raise pytest.skip.Exception(outcome.text, _use_item_location=True)


def raise_failures(outcome: ItemOutcome) -> None:
    """In the test itself: what is red and known."""
    if outcome.red:
        raise OutcomeError(outcome.text)


def annotate(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put the word on the report that shows it, and the case's result on the first report that can carry it.

    Both are plain strings: the report may travel from an xdist worker to the controller. A red outcome shows its text,
    not where we raised it.
    """
    if call.excinfo is not None and isinstance(call.excinfo.value, OutcomeError):
        report.longrepr = str(call.excinfo.value)
    if report.when == "setup" and (result := item.stash.get(RESULT, None)) is not None:
        report.llmperf_result = result  # type: ignore[attr-defined]  # travels with the report
    word = item.stash.get(WORD, None)
    shows = report.when == "call" or (report.when == "setup" and not report.passed)
    if word is not None and shows and not _broken(report, word):
        report.llmperf_word = str(word)  # type: ignore[attr-defined]  # travels with the report


def _broken(report: pytest.TestReport, word: Word) -> bool:
    """True when the phase ended otherwise than the word says: an error of the test machinery keeps pytest's own."""
    expected = {"passed": "passed", "failed": "failed", "error": "failed"}.get(_CATEGORY[word][0], "skipped")
    return report.outcome not in {expected, "skipped"} and not (word is Word.INCONCLUSIVE and report.failed)


def status(report: Any) -> tuple[str, str, tuple[str, dict[str, bool]]]:
    """The category, letter and word that pytest counts and prints for an annotated report.

    Red words keep pytest's own categories, so that its sections, counts and colours stay right; a word that
    ``--llmperf-fail-on`` leaves out is counted as skipped, under its own name.
    """
    word = Word(report.llmperf_word)
    category, letter, markup = _CATEGORY[word]
    if report.skipped and category in {"failed", "error"}:
        category, letter, markup = "skipped", "s", {"yellow": True}
    elif report.failed and category not in {"failed", "error"}:
        category, letter, markup = "failed", "F", {"red": True}
    return category, letter, (str(word), markup)
