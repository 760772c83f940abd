"""``llmperf compare``: saved runs against saved runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmperf.cli.saved import cases_at
from pytest_llmperf.cli.status import FINE, REGRESSION, UNFIT

if TYPE_CHECKING:
    from pytest_llmperf.pipeline.compare import GatesOf
    from pytest_llmperf.pipeline.saved_cases import SavedCase

_USAGE = """\
llmperf compare [-h] [--gate METRIC[=MARGIN] | --suite FILE] REFERENCE CANDIDATE
       llmperf compare [-h] [--gate METRIC | --suite FILE] NEITHER FIRST SECOND BOTH
"""
_ABOUT = """\
Judges the saved runs of CANDIDATE against those of REFERENCE, case by case, as a session does against a stored
baseline. Each side is a .llmperf folder, or the folder of one run. One case on each side is compared whatever the two
are called.

Four sides are two options, each on and off: what each does alone, and what only both together do. Each needs two
sessions (server starts), taken by turns: NEITHER FIRST SECOND BOTH, then BOTH SECOND FIRST NEITHER.

Exit status: 0 nothing is worse, 1 something is, 2 usage, 10 nothing could be compared. Four sides: 0 or 10.
"""


def add(commands: Any) -> None:
    """Add the command to the parsers of ``llmperf``."""
    parser = commands.add_parser(
        "compare",
        help="saved runs against saved runs, or two options in all four ways",
        usage=_USAGE,
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sides", type=Path, nargs="+", metavar="SIDE", help="two or four folders, in the order above")
    gates = parser.add_mutually_exclusive_group()
    gates.add_argument(
        "--gate", action="append", default=[], metavar="METRIC[=MARGIN]", help="what to judge; repeatable"
    )
    gates.add_argument("--suite", type=Path, metavar="FILE", help="judge its cases by its gates and margins")
    parser.set_defaults(run=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    from pytest_llmperf.errors import UsageError  # noqa: PLC0415 (--help answers at once)

    sides = arguments.sides
    if len(sides) not in {2, 4}:
        raise UsageError(f"{len(sides)} sides: name two, or four for two options: NEITHER FIRST SECOND BOTH")
    cases = [cases_at([side]) for side in sides]
    gates_of = _gates_of(arguments, cases[-1])
    return _two_sides(cases, gates_of) if len(sides) == 2 else _four_ways(cases, gates_of)  # noqa: PLR2004


def _gates_of(arguments: argparse.Namespace, judged: Sequence[SavedCase]) -> GatesOf:
    from pytest_llmperf import suitefile  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.pipeline.compare import gate_of, gates_of_suite  # noqa: PLC0415

    if arguments.suite is not None:
        return gates_of_suite(suitefile.load_suite(arguments.suite, overrides={}, environ=os.environ), judged)
    gates = [gate_of(text) for text in arguments.gate]
    return lambda _: gates


def _two_sides(cases: Sequence[Sequence[SavedCase]], gates_of: GatesOf) -> int:
    from pytest_llmperf.model.verdict import Word  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.pipeline.compare import compare  # noqa: PLC0415
    from pytest_llmperf.reports import terminal  # noqa: PLC0415

    results = compare(cases[0], cases[1], gates_of)
    for result in results:
        for line in terminal.render(result):
            print(line)
    words = {verdict.word for result in results for verdict in result.verdicts}
    if Word.REGRESSED in words:
        return REGRESSION
    return FINE if words - {Word.INVALID, Word.NO_BASELINE} else UNFIT


def _four_ways(cases: Sequence[Sequence[SavedCase]], gates_of: GatesOf) -> int:
    from pytest_llmperf.judge.factorial import CELL_NAMES  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.pipeline.factorial import compare_options  # noqa: PLC0415
    from pytest_llmperf.reports import factorials  # noqa: PLC0415

    found = compare_options(dict(zip(CELL_NAMES, cases, strict=True)), gates_of)
    for each in found:
        for line in factorials.render(each):
            print(line)
    return FINE if any(each.effects for each in found) else UNFIT
