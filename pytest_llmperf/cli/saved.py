"""The saved runs that a command line names, by case."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmperf.model.metric import Metric
    from pytest_llmperf.pipeline.saved_cases import SavedCase


def add_runs(parser: argparse.ArgumentParser) -> None:
    """The argument ``runs``: what ``cases_at`` takes."""
    parser.add_argument(
        "runs", type=Path, nargs="*", default=[Path(".llmperf")], metavar="RUN_FOLDER|.llmperf", help="default .llmperf"
    )


def cases_at(paths: Sequence[Path]) -> list[SavedCase]:
    """All cases with a candidate run; runs that are unreadable or left out are told on stderr.

    Raises:
        UsageError: no run is there, or none can be read.
    """
    cases, unreadable = read_cases(paths)
    for why in unreadable:
        print(f"left out: {why}", file=sys.stderr)
    for case in cases:
        for run, why in case.left_out.items():
            print(f"left out: {run}: {why}", file=sys.stderr)
    return cases


def read_cases(paths: Sequence[Path]) -> tuple[list[SavedCase], list[str]]:
    """The same in silence, with what is wrong with each folder that cannot be read.

    Raises:
        UsageError: no run is there, or none can be read.
    """
    from pytest_llmperf.clock import CLOCK  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.errors import SavedRunError, UsageError  # noqa: PLC0415
    from pytest_llmperf.history import read_facts  # noqa: PLC0415
    from pytest_llmperf.pipeline.saved import find_runs  # noqa: PLC0415
    from pytest_llmperf.pipeline.saved_cases import by_case  # noqa: PLC0415

    saved, unreadable = [], []
    for folder in (folder for path in paths for folder in find_runs(path)):
        try:
            saved.append(read_facts(folder))
        except SavedRunError as error:
            unreadable.append(str(error))
    cases = by_case(saved, now=CLOCK.utc_now())
    if not cases:
        first = f"; {unreadable[0]}" if unreadable else ""
        raise UsageError(f"{', '.join(map(str, paths))}: no candidate run that can be read{first}")
    return cases, unreadable


def metrics_named(text: str) -> list[Metric]:
    """The metrics of ``--metrics A,B``; [] for "".

    Raises:
        UsageError: one is in no table; the text guesses which was meant.
    """
    if not text:
        return []
    from pytest_llmperf.errors import UsageError  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.metrics.definitions import METRICS  # noqa: PLC0415
    from pytest_llmperf.registry import did_you_mean  # noqa: PLC0415

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in METRICS:
            raise UsageError(f"--metrics: unknown metric {name!r}{did_you_mean(name, METRICS)}")
    return [METRICS[name] for name in dict.fromkeys(names)]
