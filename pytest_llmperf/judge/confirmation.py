"""A red is confirmed by a fresh start, or says that it was not."""

from __future__ import annotations

from dataclasses import replace

from pytest_llmperf.judge.words import size
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.verdict import Verdict, Word

CONFIRMED_SHARE = 0.5
"""Of the loss that was seen, on the scale of judgement: what a fresh run must show of it."""


def confirm(verdict: Verdict, gate: Gate, reference_value: float, confirmation_value: float) -> Verdict:
    """The verdict after the server was restarted, warmed up and measured once more.

    REGRESSED stays when the fresh run alone is also worse than the floor and shows at least half of the loss that was
    seen, else it becomes INCONCLUSIVE with both figures: a slow session is not a slow engine, and its loss shrinks with
    a fresh start where an engine's stays. Verdicts with another word are returned as they are.

    Args:
        verdict: of ``judge``.
        gate: what was judged.
        reference_value: the baseline's mean (``verdict.reference``), or the reference arm's run of the same extra pair.
        confirmation_value: the fresh run's value, in the metric's unit.

    Raises:
        ValueError: a value that cannot be judged (zero, negative or not finite); such a red is ``unconfirmed``.
    """
    if verdict.word is not Word.REGRESSED:
        return verdict
    difference = gate.transform(confirmation_value) - gate.transform(reference_value)
    change = gate.change(difference)
    if difference - gate.null > max(gate.floor, CONFIRMED_SHARE * (_seen(verdict, gate) - gate.null)):
        return replace(verdict, confirmation=change)
    first = "unknown" if verdict.change is None else size(gate, verdict.change, signed=True)
    why = f"not confirmed: {first} before, {size(gate, change, signed=True)} after a fresh start"
    return replace(verdict, word=Word.INCONCLUSIVE, confirmation=change, cause=why)


def _seen(verdict: Verdict, gate: Gate) -> float:
    """The difference that made it red; nothing where the verdict does not say."""
    if verdict.measured is None or verdict.reference is None:
        return gate.null
    return gate.transform(verdict.measured) - gate.transform(verdict.reference)


def unconfirmed(verdict: Verdict, why: str = "no fresh start was possible") -> Verdict:
    """A REGRESSED verdict that no fresh start confirmed, marked so; other words are returned as they are."""
    if verdict.word is not Word.REGRESSED:
        return verdict
    return replace(verdict, cause=f"unconfirmed: {why}")


def cut_short(verdict: Verdict, why: str) -> Verdict:
    """An undecided verdict that says why no further run was made; other verdicts are returned as they are."""
    if verdict.word is not Word.INCONCLUSIVE or verdict.p_pass is None:
        return verdict
    return replace(verdict, cause=f"{verdict.cause}; not run again: {why}")
