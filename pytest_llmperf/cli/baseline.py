"""``llmperf baseline``: stored baselines."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pytest_llmperf.cli.status import FINE, USAGE


def add(commands: Any) -> None:
    """Add the command to the parsers of ``llmperf``."""
    parser = commands.add_parser("baseline", help="stored baselines")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    show = actions.add_parser("show", help="what is stored: cases, sessions, values and their spread, reasons")
    show.add_argument("path", type=Path, nargs="?", default=Path("baselines"), help="a file or a folder of them")
    show.set_defaults(run=_show)


def _show(arguments: argparse.Namespace) -> int:
    from pytest_llmperf import baseline  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.baseline.reader import load  # noqa: PLC0415
    from pytest_llmperf.errors import BaselineError, UsageError  # noqa: PLC0415

    found = sorted(arguments.path.rglob("*.yaml")) if arguments.path.is_dir() else [arguments.path]
    files = [path for path in found if path.is_file()]
    if not files:
        raise UsageError(f"{arguments.path}: no baseline here; --llmperf-accept=missing records one")
    status = FINE
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
