"""``llmperf calibrate``: what saved runs of one build say of the noise, and of the margins that fit it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from pytest_llmperf.cli.saved import add_runs, cases_at
from pytest_llmperf.cli.status import FINE, USAGE

if TYPE_CHECKING:
    from pytest_llmperf.model.calibration import Calibration
    from pytest_llmperf.pipeline.saved_cases import SavedCase

_ABOUT = """\
Takes the candidate runs that sessions of ONE build have saved, grouped by server start, and says of each metric how
much it differs from run to run and from start to start, what loss can be seen, and the smallest margin that fits. Two
sessions are the least; ten with two runs each are worth something.
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
    parser.add_argument("--metrics", default="", metavar="A,B", help="default: what `llmperf compare` judges")
    parser.add_argument("--json", action="store_true", help="every figure, as one document")
    parser.set_defaults(run=_calibrate)


def _calibrate(arguments: argparse.Namespace) -> int:
    from pytest_llmperf.reports import calibrations  # noqa: PLC0415 (--help answers at once)

    status, found = FINE, {}
    for case in cases_at(arguments.runs):
        try:
            found[f"{case.suite} {case.case} on {case.arm}"] = _of(case, arguments.metrics)
        except ValueError as error:  # one case that cannot be calibrated hides no other
            print(f"{case.case} on {case.arm}: {error}", file=sys.stderr)
            status = USAGE
    if arguments.json:
        print(json.dumps({name: calibration.to_dict() for name, calibration in found.items()}, indent=1))
        return status
    for name, calibration in found.items():
        for line in calibrations.render(name, calibration):
            print(line)
    return status


def _of(case: SavedCase, wanted: str) -> Calibration:
    """Raises ValueError: no run, fewer than two sessions, or a metric that not all runs have."""
    from pytest_llmperf import judge  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.metrics.definitions import METRICS  # noqa: PLC0415
    from pytest_llmperf.pipeline.compare import JUDGED, gate_of  # noqa: PLC0415

    measured = case.measurement()
    named = [gate_of(name).metric for name in wanted.split(",") if name]
    metrics = named or [METRICS[name] for name in JUDGED if measured.of(name)]
    if not metrics:
        raise ValueError("no run that may be judged")
    return judge.calibrate(measured, metrics)
