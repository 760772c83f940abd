"""The two samples behind one gate, checked and brought to the scale of judgement."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement, Observation
from pytest_llmperf.model.verdict import BASELINE, Verdict, Word
from pytest_llmperf.stats.variance import Sessions, mean, sessions

NOTHING = Sessions((), math.nan, math.nan, math.nan, math.nan, 0, math.nan)
"""The layout of no values."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One side of a comparison.

    Attributes:
        runs: in order of time.
        groups: values on the scale of judgement by session, sessions in order of their first run.
        average: mean of the session means, in the metric's own unit; None without a usable value.
        fault: why the values may not be judged, "" when they may; then the other attributes are whole.
        layout: ``groups`` reduced to means and variances.
    """

    runs: Sequence[Observation]
    groups: list[list[float]]
    average: float | None
    fault: str
    layout: Sessions = NOTHING

    @property
    def values(self) -> list[float]:
        """All values on the scale of judgement, session after session."""
        return [value for group in self.groups for value in group]


def read(observations: Sequence[Observation], gate: Gate, invalid: str = "") -> Sample:
    """The observations of one side, each transformed once; ``invalid`` says why they may not be judged at all."""
    runs = sorted(observations, key=attrgetter("order"))
    if not runs:
        return Sample(runs, [], None, invalid or "no run has a value")
    groups: dict[str, list[float]] = {}
    for run in runs:
        try:
            value = gate.transform(run.value)
        except ValueError as error:
            return Sample(runs, [], None, f"{error} (run {run.order}, session {run.session})")
        if run.session in groups:
            groups[run.session].append(value)
        else:
            groups[run.session] = [value]
    grouped = list(groups.values())
    return Sample(runs, grouped, _average(runs, groups), invalid, sessions(grouped))


def _average(runs: Sequence[Observation], groups: Collection[str]) -> float:
    if len(groups) == len(runs):
        return mean([run.value for run in runs])
    plain: dict[str, list[float]] = {session: [] for session in groups}
    for run in runs:
        plain[run.session].append(run.value)
    return mean([mean(values) for values in plain.values()])


def verdict(gate: Gate, reference: Sample, candidate: Sample, word: Word, cause: str = "", **evidence: Any) -> Verdict:
    """A verdict that says what was compared, and of the difference what ``evidence`` has."""
    measured = [run.value for run in candidate.runs]
    return Verdict(
        metric=gate.metric.name,
        word=word,
        margin=gate.margin,
        at_least=gate.at_least,
        reference=reference.average,
        measured=mean(measured) if measured and all(map(math.isfinite, measured)) else None,
        runs=len(candidate.runs),
        reference_runs=len(reference.runs),
        reference_sessions=len(reference.groups),
        against=gate.reference or BASELINE,
        cause=cause,
        **evidence,
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
        },
        measurement.invalid,
    )
