"""Nights that were better than the baseline, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

from pytest_llmperf import baseline, judge
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.pipeline.saved_cases import SavedCase

NIGHTS = 7
"""A week: a gain that lasts is an engine's; a baseline that never rises forgives the next loss."""

_UNJUDGED = {Word.INVALID, Word.NO_BASELINE}


def improved(
    case: SavedCase,
    baselines: Sequence[baseline.Baseline],
    gates: Sequence[Gate],
    since: Mapping[str, date],
    family: int,
) -> dict[str, float]:
    """The metrics that were IMPROVED in each of the latest ``NIGHTS`` nights that judged them; mean change by name.

    A night is the day on which a session began, and has the verdict of its latest session against the baselines as
    they are now. Nights up to the day of acceptance are those that were accepted.

    Args:
        case: all saved runs.
        baselines: of the case on its hardware, as ``baseline.reference`` takes them.
        gates: on these.
        since: metric -> the day on which its baseline was accepted.
        family: number of gated cases.
    """
    verdicts = {night: _judged(part, baselines, gates, family) for night, part in _by_night(case).items()}
    found = {}
    for gate in gates:
        name = gate.metric.name
        judged = [each[name] for night, each in verdicts.items() if night > since[name] and name in each]
        latest = judged[-NIGHTS:]
        if len(latest) == NIGHTS and all(each.word is Word.IMPROVED for each in latest):
            found[name] = sum(each.change or 0.0 for each in latest) / NIGHTS
    return found


def _by_night(case: SavedCase) -> dict[date, SavedCase]:
    """The latest session of each night, in order of time."""
    sessions: dict[date, str] = {}
    begun: dict[str, date] = {}
    for saved in case.runs:
        night = begun.setdefault(saved.run.session, date.fromisoformat(saved.run.started[:10]))
        sessions[night] = saved.run.session
    return {
        night: replace(case, runs=[each for each in case.runs if each.run.session == session])
        for night, session in sorted(sessions.items())
    }


def _judged(
    night: SavedCase, baselines: Sequence[baseline.Baseline], gates: Sequence[Gate], family: int
) -> dict[str, Verdict]:
    reference = baseline.reference(baselines, night.facts)
    found = judge.sequential(reference.measurement, night.measurement(gates), gates, family=family)
    return {each.metric: each for each in found if each.word not in _UNJUDGED}
