"""``llmperf history``: what saved sessions say together."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmperf.cli.saved import add_runs, read_cases
from pytest_llmperf.cli.status import FINE

if TYPE_CHECKING:
    from pytest_llmperf.judge.timeline import CaseHistory
    from pytest_llmperf.pipeline.saved_cases import SavedCase

_ABOUT = """\
Each case and metric over its saved sessions (server starts; the mean of their runs): where a level changed and what
changed with it, a slow creep away from the baseline, a metric that takes two values in turns, nodes that are slow over
all cases. Only runs that are comparable with the newest one of their case go in. Advice: no verdict, and no exit status
but 0.
"""


def add(commands: Any) -> None:
    """Add the command to the parsers of ``llmperf``."""
    parser = commands.add_parser(
        "history",
        help="what saved sessions say together: changes, creep, two modes, slow nodes",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_runs(parser)
    parser.add_argument("--case", action="append", default=[], metavar="ID", help="only this case; repeatable")
    parser.add_argument("--metrics", default="", metavar="A,B", help="default: what `llmperf compare` judges")
    parser.add_argument("--baselines", type=Path, default=Path("baselines"), metavar="DIR", help="default baselines/")
    parser.add_argument("--json", action="store_true", help="every session and figure, as one document")
    parser.set_defaults(run=_history)


def _history(arguments: argparse.Namespace) -> int:
    from pytest_llmperf.pipeline.history import slow_nodes_of  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.reports import histories as report  # noqa: PLC0415

    cases, unreadable = read_cases(arguments.runs)
    found = _histories(_chosen(cases, arguments.case), arguments)
    slow = slow_nodes_of(found)
    left_out = len(unreadable) + sum(len(case.left_out) for case in cases)
    if arguments.json:
        print(report.render_json(found, slow, left_out), end="")
        return FINE
    for history in found:
        for line in report.render(history):
            print(line)
    for node in slow:
        print(node)
    if left_out:
        print(f"left out: {left_out} run{'s' * (left_out != 1)}; llmperf calibrate names them", file=sys.stderr)
    return FINE


def _chosen(cases: Sequence[SavedCase], wanted: Sequence[str]) -> list[SavedCase]:
    from pytest_llmperf.errors import UsageError  # noqa: PLC0415 (--help answers at once)

    if unknown := set(wanted) - {case.case for case in cases}:
        there = ", ".join(dict.fromkeys(case.case for case in cases))
        raise UsageError(f"--case {min(unknown)}: no saved run of it; there are {there}")
    return [case for case in cases if case.runs and (not wanted or case.case in wanted)]


def _histories(cases: Sequence[SavedCase], arguments: argparse.Namespace) -> list[CaseHistory]:
    from pytest_llmperf import baseline  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.errors import BaselineError  # noqa: PLC0415
    from pytest_llmperf.pipeline.compare import JUDGED, gate_of  # noqa: PLC0415
    from pytest_llmperf.pipeline.history import anchors_of, history_of  # noqa: PLC0415

    gates = [gate_of(name) for name in arguments.metrics.split(",") if name] or [gate_of(name) for name in JUDGED]
    found = []
    for case in cases:
        try:
            anchors = anchors_of(case, baseline.Store(arguments.baselines))
        except BaselineError as error:  # one bad file hides no history
            print(error, file=sys.stderr)
            anchors = {}
        found.append(history_of(case, gates, anchors))
    return found
