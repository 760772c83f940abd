"""``llmperf calibrate``: what saved runs of one build say of the noise, and of the margins that fit it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmperf.cli.saved import add_runs, cases_at, metrics_named
from pytest_llmperf.cli.status import FINE, USAGE

if TYPE_CHECKING:
    from pytest_llmperf.model.metric import Metric
    from pytest_llmperf.pipeline.calibrate import Calibrated
    from pytest_llmperf.pipeline.saved_cases import SavedCase

_ABOUT = """\
Takes the candidate runs that sessions of ONE build, the newest run's, have saved, grouped by server start, and says of
each metric how much it differs from run to run and from start to start, what loss can be seen, and the smallest margin
that fits. Two sessions are the least; ten with two runs each are worth something. Runs that are left out are named.
With --store it is kept in the baseline files that the cases have, and the difference is shown as a review will show it.
"""


def add(commands: Any) -> None:
    """Add the command to the parsers of ``llmperf``."""
    parser = commands.add_parser(
        "calibrate",
        help="the noise of one build, and the margins that fit it",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_runs(parser)
    parser.add_argument(
        "--metrics",
        default="",
        metavar="A,B",
        help="default: what `llmperf compare` judges; with --store the baseline's",
    )
    parser.add_argument("--baselines", type=Path, default=Path("baselines"), metavar="DIR", help="default baselines/")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--json", action="store_true", help="every figure, as one document")
    what.add_argument("--store", action="store_true", help="keep it in the baseline files")
    parser.set_defaults(run=_calibrate)


def _calibrate(arguments: argparse.Namespace) -> int:
    from pytest_llmperf.errors import BaselineError  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.reports import calibrations  # noqa: PLC0415

    metrics = metrics_named(arguments.metrics)
    status, found = FINE, {}
    for case in cases_at(arguments.runs):
        try:
            done = _of(case, metrics, arguments)
        except (ValueError, BaselineError) as error:  # one case that cannot be calibrated hides no other
            print(f"{case.case} on {case.arm}: {error}", file=sys.stderr)
            status = USAGE
            continue
        for run, why in done.left_out.items():
            if run not in case.left_out:
                print(f"left out: {run}: {why}", file=sys.stderr)
        found[f"{case.suite} {case.case} on {case.arm}"] = done
    if arguments.json:
        print(json.dumps({name: done.calibration.to_dict() for name, done in found.items()}, indent=1))
        return status
    for name, done in found.items():
        for line in calibrations.render(name, done.calibration):
            print(line)
        for line in (line for change in done.changes for line in change.diff()):
            print(line)
    return status


def _of(case: SavedCase, metrics: Sequence[Metric], arguments: argparse.Namespace) -> Calibrated:
    from pytest_llmperf import baseline  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.clock import CLOCK  # noqa: PLC0415
    from pytest_llmperf.pipeline import calibrate  # noqa: PLC0415
    from pytest_llmperf.pipeline.commit import commit_at  # noqa: PLC0415

    if not arguments.store:
        return calibrate.calibrate(case, metrics)
    today, shelf = CLOCK.utc_now().date(), baseline.Store(arguments.baselines)
    return calibrate.store(case, shelf, on=today, commit=commit_at(Path()), metrics=metrics)
