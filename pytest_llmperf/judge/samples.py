"""The two samples behind one gate, checked and brought to the scale of judgement."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement, Observation
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.stats.variance import mean


def by_session(observations: Iterable[Observation], gate: Gate) -> list[list[float]]:
    """Values on the scale of judgement, grouped by session, sessions in order of their first run."""
    groups: dict[str, list[float]] = {}
    for observation in sorted(observations, key=lambda each: each.order):
        groups.setdefault(observation.session, []).append(gate.transform(observation.value))
    return list(groups.values())


def blank(gate: Gate, reference: Sequence[Observation], candidate: Sequence[Observation], word: Word) -> Verdict:
    """A verdict that says what was compared and nothing yet of the outcome.

    The two means are in the metric's own unit; the reference's is the mean of its session means.
    """
    sessions: dict[str, list[float]] = {}
    for observation in reference:
        sessions.setdefault(observation.session, []).append(observation.value)
    measured = [observation.value for observation in candidate]
    return Verdict(
        metric=gate.metric.name,
        word=word,
        margin=gate.margin,
        reference=mean([mean(values) for values in sessions.values()]) if sessions else None,
        measured=mean(measured) if measured and all(map(math.isfinite, measured)) else None,
        runs=len(candidate),
        reference_runs=len(reference),
        reference_sessions=len(sessions),
        against=gate.reference or "baseline",
    )


def runs_of(measurement: Measurement) -> list[tuple[int, str]]:
    """Every run that gave any metric a value, as (order, session), in order of time."""
    return sorted({(each.order, each.session) for sample in measurement.samples.values() for each in sample})


def first_runs(measurement: Measurement, runs: int) -> Measurement:
    """The measurement as it was after its first ``runs`` runs."""
    kept = set(runs_of(measurement)[:runs])
    return Measurement(
        {
            name: tuple(each for each in sample if (each.order, each.session) in kept)
            for name, sample in measurement.samples.items()
        }
    )


def fault(sample: Sequence[Observation], gate: Gate) -> str:
    """Why the values may not be judged, "" when they may."""
    if not sample:
        return "no run has a value"
    for observation in sample:
        try:
            gate.transform(observation.value)
        except ValueError as error:
            return f"{error} (run {observation.order}, session {observation.session})"
    return ""


def gap(measurement: Measurement, gate: Gate) -> str:
    """How many of the measured runs lack the metric, "" when none does: judging the rest would select runs."""
    runs = runs_of(measurement)
    absent = len(runs) - len(measurement.of(gate.metric.name))
    return f"no value in {absent} of {len(runs)} runs" if absent else ""
