"""The ``llmperf`` command: what needs no test session.

Exit status: 0 fine, 1 regression, 2 usage, 10 invalid or unfit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pytest_llmperf import __version__

USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit status."""
    from pytest_llmperf.errors import LlmperfError  # noqa: PLC0415 (--help answers at once)

    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
    except LlmperfError as error:
        print(error, file=sys.stderr)
        return USAGE
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="llmperf", description="Performance of LLM serving engines.")
    parser.add_argument("--version", action="version", version=f"pytest-llmperf {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    baseline = commands.add_parser("baseline", help="stored baselines")
    actions = baseline.add_subparsers(required=True, metavar="ACTION")
    show = actions.add_parser("show", help="what is stored: cases, sessions, values and their spread, reasons")
    show.add_argument("path", type=Path, nargs="?", default=Path("baselines"), help="a file or a folder of them")
    show.set_defaults(run=_baseline_show)
    return parser


def _baseline_show(arguments: argparse.Namespace) -> int:
    from pytest_llmperf import baseline  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.baseline.reader import load  # noqa: PLC0415
    from pytest_llmperf.errors import BaselineError, UsageError  # noqa: PLC0415

    found = sorted(arguments.path.rglob("*.yaml")) if arguments.path.is_dir() else [arguments.path]
    files = [path for path in found if path.is_file()]
    if not files:
        raise UsageError(f"{arguments.path}: no baseline here; --llmperf-accept=missing records one")
    status = 0
    for file in files:
        try:
            lines = baseline.describe(str(file), load(file))
        except BaselineError as error:  # one bad file hides no other
            print(error, file=sys.stderr)
            status = USAGE
            continue
        for line in lines:
            print(line)
    return status
