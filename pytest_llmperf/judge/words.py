"""From evidence to a word, and why there is none."""

from __future__ import annotations

from pytest_llmperf.judge.evidence import Evidence
from pytest_llmperf.judge.looks import Look
from pytest_llmperf.judge.stored import ENOUGH_SESSIONS
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.verdict import BASELINE, RECENT, Verdict, Word

IMPROVED_LEVEL = 0.01
"""IMPROVED asks a person to move a baseline, so it wants more than REGRESSED does."""


def decide(gate: Gate, evidence: Evidence, look: Look, p_worse: float, p_better: float) -> Word:
    """REGRESSED where a loss is shown, PASSED where one of the margin is excluded, else INCONCLUSIVE.

    ``p_worse`` and ``p_better`` are adjusted already. A loss below the floor is never REGRESSED, however clear. A gate
    with ``at_least`` is never IMPROVED: to be better than promised moves no baseline.
    """
    if p_worse <= look.alpha and evidence.excess > gate.floor:
        return Word.REGRESSED
    if p_better <= IMPROVED_LEVEL and -evidence.excess > gate.floor:
        return Word.IMPROVED if gate.at_least is None else Word.PASSED
    if evidence.p_loss(gate.delta) <= look.beta:
        return Word.PASSED
    return Word.INCONCLUSIVE


def cause(gate: Gate, evidence: Evidence, *, with_enough_sessions: float | None = None, sessions: str = "") -> str:
    """Why a comparison is INCONCLUSIVE: too small a baseline, too much noise, or a change that is neither.

    Args:
        gate: what was judged.
        evidence: what was found.
        with_enough_sessions: what would be visible if the baseline were large enough, None when it is or has none.
        sessions: the baseline's size in words, for the text.
    """
    seen = size(gate, visible_loss(gate, evidence.visible))
    if evidence.visible <= gate.delta:
        shown = size(gate, gate.change(evidence.difference), signed=True)
        goal = "" if gate.at_least is None else f", counted from {gate.at_least:g} times {gate.reference}"
        return (
            f"borderline: a change of {shown} neither shows a loss nor excludes one of {size(gate, gate.margin)}{goal}"
        )
    limit = f"smallest visible change {seen} > margin {size(gate, gate.margin)}"
    if with_enough_sessions is not None and with_enough_sessions <= gate.delta:
        return f"baseline too small ({sessions}): {limit}"
    return f"underpowered: {limit}"


def provisional(verdict: Verdict, gate: Gate) -> str:
    """What a verdict against a small baseline is worth: "provisional, 3 of 10 sessions, smallest loss visible 9 %".

    "" for a baseline of ``stored.ENOUGH_SESSIONS`` or more, and for verdicts that no baseline's noise goes into.
    """
    stored_reference = verdict.against in {BASELINE, RECENT} and verdict.p_pass is not None
    if not stored_reference or verdict.reference_sessions >= ENOUGH_SESSIONS or verdict.smallest_visible is None:
        return ""
    return (
        f"provisional, {verdict.reference_sessions} of {ENOUGH_SESSIONS} sessions,"
        f" smallest loss visible {size(gate, verdict.smallest_visible)}"
    )


def visible_loss(gate: Gate, difference: float) -> float:
    """A loss on the scale of judgement as a positive share, or in the unit: to be read beside ``gate.margin``."""
    return abs(gate.change(difference))


def size(gate: Gate, change: float, *, signed: bool = False) -> str:
    """A change as people read it: per cent for ratio metrics, else with the unit."""
    sign = "+" if signed else ""
    if gate.metric.scale == "ratio":
        return f"{100 * change:{sign}.3g} %"
    return f"{change:{sign}.3g} {gate.metric.unit}".rstrip()
