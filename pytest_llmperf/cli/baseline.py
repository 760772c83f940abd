"""``llmperf baseline``: stored baselines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmperf.cli import audit
from pytest_llmperf.cli.saved import add_runs, cases_at, metrics_named
from pytest_llmperf.cli.status import FINE, USAGE

if TYPE_CHECKING:
    from pytest_llmperf.pipeline.accept import Acceptance
    from pytest_llmperf.pipeline.saved_cases import SavedCase

_ABOUT_ACCEPT = """\
Takes the candidate runs that sessions have saved, grouped by server start, and writes them as the baseline of their
case. The difference is shown as a review will show it. Runs that are invalid, failed, made with a loss on purpose, of
another engine or command line than the newest one, or not comparable with it are left out, and named; of those that are
kept it is said in which facts they differ.
"""


def add(commands: Any) -> None:
    """Add the command to the parsers of ``llmperf``."""
    parser = commands.add_parser("baseline", help="stored baselines")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    show = actions.add_parser("show", help="what is stored: cases, sessions, values and their spread, reasons")
    show.add_argument("path", type=Path, nargs="?", default=Path("baselines"), help="a file or a folder of them")
    show.set_defaults(run=_show)
    accept = actions.add_parser(
        "accept",
        help="saved runs become the baseline of their case, in place of the one that it has",
        description=_ABOUT_ACCEPT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_runs(accept)
    accept.add_argument("--why", required=True, metavar="TEXT", help="the reason, which the review will read")
    accept.add_argument("--case", action="append", default=[], metavar="ID", help="only this case; repeatable")
    accept.add_argument("--sessions", type=int, default=20, metavar="N", help="the newest of each case (default 20)")
    accept.add_argument("--metrics", default="", metavar="A,B", help="what to keep (default: what the old one keeps)")
    accept.add_argument("--any-hardware", action="store_true", help="counts are kept for any hardware")
    accept.add_argument("--baselines", type=Path, default=Path("baselines"), metavar="DIR", help="default baselines/")
    accept.add_argument("--dry-run", action="store_true", help="only show the difference")
    accept.set_defaults(run=_accept)
    audit.add(actions)
    move = actions.add_parser("mv", help="give a case another id, on all hardware")
    move.add_argument("suite", help="the suite's name")
    move.add_argument("old", help="the case as it is called now: ARM/WORKLOAD")
    move.add_argument("new", help="and as it is called from now on")
    move.add_argument("--baselines", type=Path, default=Path("baselines"), metavar="DIR", help="default baselines/")
    move.set_defaults(run=_move)


def _show(arguments: argparse.Namespace) -> int:
    from pytest_llmperf.errors import BaselineError, UsageError  # noqa: PLC0415 (--help answers at once)

    found = sorted(arguments.path.rglob("*.yaml")) if arguments.path.is_dir() else [arguments.path]
    files = [path for path in found if path.is_file()]
    if not files:
        raise UsageError(f"{arguments.path}: no baseline here; --llmperf-accept=missing records one")
    status = FINE
    for file in files:
        try:
            lines = _described(file)
        except BaselineError as error:  # one bad file hides no other
            print(error, file=sys.stderr)
            status = USAGE
            continue
        for line in lines:
            print(line)
    return status


def _described(file: Path) -> Iterable[str]:
    from pytest_llmperf import baseline  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.baseline import published, reader  # noqa: PLC0415
    from pytest_llmperf.clock import CLOCK  # noqa: PLC0415
    from pytest_llmperf.reports import publications  # noqa: PLC0415

    if not file.name.endswith(f"{published.SUFFIX}.yaml"):
        return baseline.describe(str(file), reader.load(file))
    found = published.load(file)
    return publications.render(str(file), found.case, found.numbers, CLOCK.utc_now().date())


def _accept(arguments: argparse.Namespace) -> int:
    from pytest_llmperf import baseline  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.clock import CLOCK  # noqa: PLC0415
    from pytest_llmperf.errors import BaselineError, UsageError  # noqa: PLC0415
    from pytest_llmperf.pipeline.accept import accept  # noqa: PLC0415
    from pytest_llmperf.pipeline.commit import commit_at  # noqa: PLC0415

    if arguments.sessions < 1:
        raise UsageError(f"--sessions {arguments.sessions}: at least one")
    cases = [case for case in cases_at(arguments.runs) if not case.variant]
    if not cases:
        raise UsageError("only runs of variants were saved; their values cannot be a baseline")
    if unknown := set(arguments.case) - {case.case for case in cases}:
        raise UsageError(f"--case {unknown.pop()}: no saved run of it; there are {', '.join(c.case for c in cases)}")
    metrics = [metric.name for metric in metrics_named(arguments.metrics)]
    status = FINE
    for case in cases:
        if arguments.case and case.case not in arguments.case:
            continue
        try:
            done = accept(
                case.newest(arguments.sessions),
                baseline.Store(arguments.baselines),
                why=arguments.why,
                on=CLOCK.utc_now().date(),
                commit=commit_at(Path()),
                metrics=metrics,
                any_hardware=True if arguments.any_hardware else None,
                write=not arguments.dry_run,
            )
        except BaselineError as error:  # one case that cannot be accepted hides no other
            print(error, file=sys.stderr)
            status = USAGE
            continue
        _tell(case, done)
    return status


def _tell(case: SavedCase, done: Acceptance) -> None:
    from pytest_llmperf.metrics.definitions import METRICS  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.reports.layout import change  # noqa: PLC0415

    for run, why in done.left_out.items():
        if run not in case.left_out:
            print(f"left out: {run}: {why}", file=sys.stderr)
    for fact, values in done.spread.items():
        counted = ", ".join(f"{value} ({sessions})" for value, sessions in values.items())
        print(f"{case.case}: sessions differ in {fact}: {counted}", file=sys.stderr)
    for line in (line for file in done.changes for line in file.diff()):
        print(line)
    for name, (before, after) in done.moved.items():
        metric = METRICS[name]
        moved = after - before if metric.scale == "absolute" else after / before - 1
        print(f"{case.case}  {name}: {change(moved, metric)} against the baseline that it replaces")


def _move(arguments: argparse.Namespace) -> int:
    from pytest_llmperf import baseline  # noqa: PLC0415 (--help answers at once)

    for path in baseline.Store(arguments.baselines).rename(arguments.suite, arguments.old, arguments.new):
        print(path)
    return FINE
