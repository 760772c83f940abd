"""Accepting measured values as a baseline: a decision with a reason, and what forbids it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Literal

from pytest_llmperf.baseline.baseline import Accepted, Baseline
from pytest_llmperf.checks.comparability import COMPARE, OUTPUT, REFUSE, conditions_of
from pytest_llmperf.errors import BaselineError
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.result import CaseResult

Mode = Literal["none", "missing", "all"]

DIGITS = 6
"""Significant digits that are stored: a thousand times finer than the smallest noise that the judge believes in."""


def may_write(mode: Mode, existing: Baseline | None) -> bool:
    """What ``--llmperf-accept`` allows.

    ``missing`` writes only where there is no file: one that is not comparable any more, or lacks a metric, stands until
    somebody replaces it. ``all`` replaces the whole file, comparable or not: the new runs are the new anchor, and
    nothing of the old ones is mixed in, so that a baseline never drifts by small acceptances.
    """
    return mode == "all" or (mode == "missing" and existing is None)


def accept(
    result: CaseResult,
    measurement: Measurement,
    *,
    why: str,
    on: date,
    commit: str,
    metrics: Iterable[str] | None = None,
) -> Baseline:
    """A baseline from the runs of one case, grouped by their session; values are rounded to ``DIGITS``.

    Args:
        result: what came of the case: its id, its failure, and the facts in its environment. Facts that no list
            of ``checks.comparability`` names are left out.
        measurement: its candidate's runs; their session names become the labels of the file.
        why: the reason, which the review will read.
        on: the day.
        commit: what was measured, ``unknown`` outside a repository.
        metrics: those to keep; None for all that were measured.

    Raises:
        BaselineError: no reason, a failed or invalid run, a metric without a value in every run, an unknown fact.
    """
    case, facts = result.case, result.environment
    names = sorted(measurement.samples if metrics is None else set(metrics))
    if not why.strip():
        raise BaselineError(f"{case}: a baseline needs a reason; give --llmperf-why='...'")
    if result.failure:
        raise BaselineError(f"{case}: a failed case cannot become a baseline: {result.failure.splitlines()[0]}")
    invalid = next((measurement.invalid[name] for name in names if name in measurement.invalid), "")
    if invalid:  # whoever shows it names the metric, and the finding says what it could have moved
        raise BaselineError(f"{case}: an invalid run cannot become a baseline: {invalid}")
    unknown = [key for key in REFUSE if not facts.get(key)]
    if unknown:
        raise BaselineError(f"{case}: the runs do not say {', '.join(unknown)}; nothing could be compared with them")
    sessions, values = _grouped(measurement, names, case)
    return Baseline(
        case=case,
        workload=facts["workload"],
        refuse_unless={key: facts[key] for key in REFUSE if key != "workload"},
        machine=conditions_of(facts),
        environment={key: facts[key] for key in (*COMPARE, OUTPUT) if facts.get(key)},
        accepted=Accepted(on=on, commit=commit, why=" ".join(why.split())),
        sessions=sessions,
        metrics=values,
    )


def _grouped(
    measurement: Measurement, names: Sequence[str], case: str
) -> tuple[tuple[str, ...], dict[str, tuple[tuple[float, ...], ...]]]:
    """Session labels in order of time, and the values of every metric by session."""
    runs = sorted({(each.order, each.session) for sample in measurement.samples.values() for each in sample})
    if not runs or not names:
        raise BaselineError(f"{case}: there is no run to accept")
    sessions = tuple(dict.fromkeys(session for _, session in runs))
    grouped = {}
    for name in names:
        by_run = {(each.order, each.session): each.value for each in measurement.of(name)}
        missing = [run for run in runs if run not in by_run]
        if missing:
            raise BaselineError(f"{case}: {name} has no value in {len(missing)} of {len(runs)} runs")
        for (order, session), value in by_run.items():
            _check(value, name, f"{case}: run {order} of session {session}")
        grouped[name] = tuple(
            tuple(significant(by_run[run]) for run in runs if run[1] == session) for session in sessions
        )
    return sessions, grouped


def _check(value: float, name: str, where: str) -> None:
    metric = METRICS.get(name)
    if metric is None:
        raise BaselineError(f"{where}: {name} is not in the metric table")
    if not math.isfinite(value) or (metric.scale == "ratio" and value <= 0):
        raise BaselineError(f"{where}: {name} = {value} cannot be a baseline; {rule(metric.scale)}")


def rule(scale: str) -> str:
    """What a value of a metric must be."""
    return "a ratio metric must be positive and finite" if scale == "ratio" else "it must be finite"


def significant(value: float) -> float:
    """The value with ``DIGITS`` significant digits."""
    return float(f"{value:.{DIGITS}g}")
