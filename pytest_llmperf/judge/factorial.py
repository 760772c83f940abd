"""Two options, each on and off: what each does alone, and whether both together do more or less than their sum.

A report that credits one option with what only the pair of them does is the reason for this comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pytest_llmperf.judge.evidence import Evidence
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Observation
from pytest_llmperf.stats.trend import effect

Cell = tuple[bool, bool]
"""Whether the first and the second option are on."""

CELL_NAMES: Mapping[Cell, str] = {
    (False, False): "neither", (True, False): "first", (False, True): "second", (True, True): "both",
}  # fmt: skip
"""In the order in which they are named to people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence:
    """What an option, or a pair of them, does to a metric.

    Attributes:
        change: as ``Verdict.change``.
        interval: its 90 % confidence interval.
        p: of "it does nothing", two-sided.
    """

    change: float
    interval: tuple[float, float]
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Factorial:
    """Two options compared in all four ways.

    Attributes:
        first, second: each alone, the other one off.
        interaction: what both together do beyond both alone, in log for ratio metrics: a change of 0 says that
            their effects multiply.
    """

    first: Influence
    second: Influence
    interaction: Influence


@dataclass(frozen=True, slots=True, kw_only=True)
class FourWays:
    """One case with two options in all four ways.

    Attributes:
        case: id, of the cell with both options.
        cells: what was measured in each, in words.
        changed: facts that differ from the cell with neither option: key -> (there, here).
        effects: by metric.
        refused: metrics that could not be compared, each with the reason.
        why: why none could, "" where one could be tried.
    """

    case: str
    cells: Mapping[Cell, str]
    changed: Mapping[Cell, Mapping[str, tuple[str, str]]]
    effects: Mapping[str, Factorial] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


def factorial(gate: Gate, cells: Mapping[Cell, Sequence[Observation]]) -> Factorial:
    """Least squares ``y = a + b A + c B + d AB + e time`` over the runs of all four cells.

    Runs alternate in time, such as 00 01 11 10 10 11 01 00; two of each cell leave three degrees of freedom.

    Raises:
        ValueError: a cell without runs, two runs at one place in time, too few runs, or options that follow each other
            so that a trend cannot be told from them.
    """
    missing = [cell for cell in CELL_NAMES if not cells.get(cell)]
    if missing:
        raise ValueError(f"{gate.metric.name}: no run with {CELL_NAMES[missing[0]]}")
    runs = sorted(((each, cell) for cell in CELL_NAMES for each in cells[cell]), key=lambda run: run[0].order)
    if len({each.order for each, _ in runs}) < len(runs):
        raise ValueError(f"{gate.metric.name}: the runs need one order in time")
    values = [gate.transform(each.value) for each, _ in runs]
    time = [float(each.order) for each, _ in runs]
    first, second = ([float(cell[place]) for _, cell in runs] for place in (0, 1))
    both = [a * b for a, b in zip(first, second, strict=True)]

    def influence(*columns: list[float]) -> Influence:
        found = effect(values, [time, *columns])
        evidence = Evidence(found.difference, found.se, found.df)
        return Influence(
            change=gate.change(found.difference),
            interval=evidence.interval(gate),
            p=min(1.0, 2 * min(evidence.p_worse, evidence.p_better)),
        )

    return Factorial(
        first=influence(both, second, first),
        second=influence(both, first, second),
        interaction=influence(first, second, both),
    )
