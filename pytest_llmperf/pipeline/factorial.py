"""Saved runs with two options in all four ways: what each option does, and what only the pair of them does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from pytest_llmperf.checks import comparability
from pytest_llmperf.errors import UsageError
from pytest_llmperf.judge.factorial import CELL_NAMES, Cell, Factorial, FourWays, factorial
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement, Observation
from pytest_llmperf.pipeline.compare import GatesOf, counterpart, judged_by_default
from pytest_llmperf.pipeline.saved_cases import SavedCase

NEITHER, BOTH = (False, False), (True, True)
FEWEST_SESSIONS = 2
"""Of each cell: eight in all leave three degrees of freedom."""


def compare_options(cells: Mapping[Cell, Sequence[SavedCase]], gates_of: GatesOf = lambda _: ()) -> list[FourWays]:
    """Every case that all four cells have.

    One case in each cell is compared whatever the four are called; several need the same id. A session is one value,
    the mean of its runs, and its first run's start is its place in time: runs of one server share its luck, and with
    one server a cell an option could not be told from that.

    Args:
        cells: each by ``saved_cases.by_case``.
        gates_of: of the case with both options; only metric and direction matter.

    Raises:
        UsageError: no case is in all four, or a run is in two of them.
    """
    found = list(_quadruples(cells))
    if not found:
        cases = "; ".join(
            f"{name}: {', '.join(each.case for each in cells[cell])}" for cell, name in CELL_NAMES.items()
        )
        raise UsageError(f"no case is in all four; {cases}")
    return [_four_ways(case, gates_of(case[BOTH])) for case in found]


def _quadruples(cells: Mapping[Cell, Sequence[SavedCase]]) -> Iterator[Mapping[Cell, SavedCase]]:
    if all(len(cases) == 1 for cases in cells.values()):
        yield {cell: cases[0] for cell, cases in cells.items()}
        return
    for case in cells[BOTH]:
        others = {cell: counterpart(case, cases) for cell, cases in cells.items() if cell != BOTH}
        known = {cell: other for cell, other in others.items() if other is not None}
        if len(known) == len(others):
            yield {**known, BOTH: case}


def _four_ways(cases: Mapping[Cell, SavedCase], gates: Sequence[Gate]) -> FourWays:
    effects: dict[str, Factorial] = {}
    refused: dict[str, str] = {}
    why = _incomparable(cases)
    if not why:
        wanted = gates or judged_by_default(*(case.measurement() for case in cases.values()))
        measured = {cell: case.measurement(wanted) for cell, case in cases.items()}
        places = _places(cases)
        for gate in wanted:
            try:
                effects[gate.metric.name] = factorial(gate, _observations(gate, measured, places))
            except ValueError as error:
                refused[gate.metric.name] = str(error).removeprefix(f"{gate.metric.name}: ")
    return FourWays(
        case=cases[BOTH].case,
        cells={cell: _named(case) for cell, case in cases.items()},
        changed={cell: comparability.changed(cases[NEITHER].facts, case.facts) for cell, case in cases.items()},
        effects=effects,
        refused=refused,
        why=why,
    )


def _incomparable(cases: Mapping[Cell, SavedCase]) -> str:
    """Why the four cannot be compared, "" where they can."""
    seen: dict[str, Cell] = {}
    for cell, name in CELL_NAMES.items():
        case = cases[cell]
        if len(case.sessions) < FEWEST_SESSIONS:
            left_out = f" ({next(iter(case.left_out.values()))})" if case.left_out else ""
            return f"{name} has {len(case.sessions)} of at least {FEWEST_SESSIONS} sessions{left_out}"
        if reasons := comparability.refusals(cases[NEITHER].facts, case.facts):
            return f"{name} is not comparable with neither: {'; '.join(reasons)}"
        for saved in case.runs:
            if seen.setdefault(saved.run.id, cell) != cell:
                return f"run {saved.run.id} is in two of the four: {CELL_NAMES[seen[saved.run.id]]} and {name}"
    return ""


def _places(cases: Mapping[Cell, SavedCase]) -> Mapping[tuple[Cell, str], int]:
    """The place in time of each session among those of all cells."""
    starts: dict[tuple[Cell, str], str] = {}
    for cell, case in cases.items():
        for saved in case.runs:
            starts.setdefault((cell, saved.run.session), saved.run.started)
    return {key: place for place, key in enumerate(sorted(starts, key=lambda key: starts[key]))}


def _observations(
    gate: Gate, measured: Mapping[Cell, Measurement], places: Mapping[tuple[Cell, str], int]
) -> dict[Cell, list[Observation]]:
    """One for each session.

    Raises:
        ValueError: a cell without a valid value in every run, or a value that the metric cannot have.
    """
    name, found = gate.metric.name, {}
    for cell, measurement in measured.items():
        if name in measurement.invalid:
            raise ValueError(f"{CELL_NAMES[cell]} is invalid: {measurement.invalid[name]}")
        sessions: dict[str, list[float]] = {}
        for each in measurement.of(name):
            sessions.setdefault(each.session, []).append(gate.transform(each.value))
        missing = [session for of, session in places if of == cell and session not in sessions]
        if missing:
            raise ValueError(f"{CELL_NAMES[cell]} has no value in session {missing[0]}")
        found[cell] = [
            Observation(gate.untransform(fmean(levels)), session, places[cell, session])
            for session, levels in sessions.items()
        ]
    return found


def _named(case: SavedCase) -> str:
    sessions = f"{len(case.sessions)} session{'s' * (len(case.sessions) != 1)}"
    return f"{case.case}, arm {case.arm}, {sessions} of {len(case.runs)} run{'s' * (len(case.runs) != 1)}"
