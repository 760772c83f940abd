"""Two options in all four ways, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_llmperf.judge.factorial import CELL_NAMES, Factorial, FourWays, Influence
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.metric import Metric
from pytest_llmperf.reports.layout import aligned, change, p_value


def render(found: FourWays) -> Iterator[str]:
    """What was measured in each cell, and by metric what each option does alone and what only the pair does."""
    yield f"{found.case}: two options, each on and off"
    cells = [
        (name, found.cells[cell], ", ".join(f"{key} {a} -> {b}" for key, (a, b) in found.changed[cell].items()))
        for cell, name in CELL_NAMES.items()
    ]
    yield from (f"  {line}" for line in aligned(cells))
    if found.why:
        yield f"  not compared: {found.why}"
        return
    rows = [row for name, effect in found.effects.items() for row in _rows(METRICS[name], effect)]
    if rows:
        yield from (f"  {line}" for line in aligned(rows))
    yield from (f"  {name}: not compared: {why}" for name, why in found.refused.items())


def _rows(metric: Metric, effect: Factorial) -> Iterator[tuple[str, ...]]:
    yield metric.name, "first alone", *_cells(metric, effect.first)
    yield "", "second alone", *_cells(metric, effect.second)
    yield "", "only both together", *_cells(metric, effect.interaction)


def _cells(metric: Metric, influence: Influence) -> tuple[str, str]:
    low, high = (change(end, metric, unit=False) for end in influence.interval)
    return f"{change(influence.change, metric)} [{low}, {high}]", p_value(influence.p)
