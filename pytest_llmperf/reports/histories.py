"""Histories as lines for a terminal, and as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pytest_llmperf import __version__
from pytest_llmperf.judge.history import CREEP_NIGHTS, SlowNode
from pytest_llmperf.judge.timeline import CaseHistory, Step, Timeline
from pytest_llmperf.reports.layout import aligned, change, number, share

SCHEMA = 1
"""Raised when a reader of an older document would misread a newer one."""
LEVELS = "▁▂▃▄▅▆▇█"
LONGEST = 40
"""Sessions that are drawn, the latest ones."""


def render(history: CaseHistory) -> Iterator[str]:
    """One case: each metric's latest sessions as a line, the last value, the range; below it what stands out."""
    days = sorted({session.day for session in history.sessions})
    span = "" if not days else f", {days[0]}" + (f" to {days[-1]}" if len(days) > 1 else "")
    sessions = f"{len(history.sessions)} session{'s' * (len(history.sessions) != 1)}"
    runs = f"{history.runs} run{'s' * (history.runs != 1)}"
    yield f"{history.suite}: {history.case}, arm {history.arm}   {sessions}, {runs}{span}"
    yield from (f"  {line}" for line in aligned([_row(line) for line in history.timelines]))
    for line in history.timelines:
        yield from (f"  {line.gate.metric.name}: {text}" for text in _remarks(line))


def render_json(histories: Sequence[CaseHistory], slow: Sequence[SlowNode], left_out: int) -> str:
    """``{"schema", "pytest_llmperf", "cases": [...], "slow_nodes": [...], "left_out": runs}``."""
    document = {
        "schema": SCHEMA,
        "pytest_llmperf": __version__,
        "cases": [_case(history) for history in histories],
        "slow_nodes": [asdict(node) for node in slow],
        "left_out": left_out,
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def sparkline(values: Sequence[float]) -> str:
    """The latest values as blocks, from the least to the most of them."""
    shown = values[-LONGEST:]
    least, most = min(shown), max(shown)
    if least == most:
        return LEVELS[3] * len(shown)
    top = len(LEVELS) - 1
    return "".join(LEVELS[round((value - least) / (most - least) * top)] for value in shown)


def _row(line: Timeline) -> tuple[str, ...]:
    metric, values = line.gate.metric, line.values
    spread = f"{number(min(values))} to {number(max(values))}" if len(values) > 1 else ""
    baseline = "" if line.anchor is None else f"baseline {number(line.anchor.value)}"
    return metric.name, sparkline(values), f"last {number(values[-1])} {metric.unit}".rstrip(), spread, baseline


def _remarks(line: Timeline) -> Iterator[str]:
    metric = line.gate.metric
    yield from (_step(step, line) for step in line.steps)
    if line.doubtful and line.autocorrelation is not None:
        yield f"nights are correlated (lag-1 {line.autocorrelation:+.2f}): change points may be noise"
    if line.modes is not None:
        yield f"{line.modes}, {line.modes.low_sessions} and {line.modes.high_sessions} sessions"
    if line.creep is not None:
        nights = f"{line.creep.nights} night{'s' * (line.creep.nights != 1)}"
        yield (
            f"{change(line.creep.change, metric)} against the baseline over the last {CREEP_NIGHTS} sessions,"
            f" beyond the margin of {share(line.gate.margin, metric)} for {nights}"
        )


def _step(step: Step, line: Timeline) -> str:
    metric, point = line.gate.metric, step.point
    moved = f"{number(point.before)} -> {number(point.after)} {metric.unit}".rstrip()
    differs = ", ".join(f"{key} {before} -> {after}" for key, (before, after) in step.changed.items())
    return (
        f"{change(point.change, metric)} ({moved}) since {step.session.day}, session {step.session.id};"
        f" {f'changed: {differs}' if differs else 'nothing that is recorded changed'}"
    )


def _case(history: CaseHistory) -> dict[str, Any]:
    return {
        "suite": history.suite,
        "case": history.case,
        "arm": history.arm,
        "runs": history.runs,
        "metrics": {line.gate.metric.name: _metric(line) for line in history.timelines},
    }


def _metric(line: Timeline) -> Mapping[str, Any]:
    return {
        "unit": line.gate.metric.unit,
        "margin": line.gate.margin,
        "sessions": [
            {"session": session.id, "started": session.started, "value": value}
            for session, value in zip(line.sessions, line.values, strict=True)
        ],
        "baseline": None if line.anchor is None else line.anchor.value,
        "change_points": [
            {**asdict(step.point), "session": step.session.id, "started": step.session.started, "changed": step.changed}
            for step in line.steps
        ],
        "autocorrelation": line.autocorrelation,
        "doubtful": line.doubtful,
        "modes": None if line.modes is None else asdict(line.modes),
        "creep": None if line.creep is None else asdict(line.creep),
    }
