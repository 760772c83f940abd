"""``llmperf report``: what saved runs say, computed again from their raw stamps."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmperf.cli.status import FINE, UNFIT, USAGE

if TYPE_CHECKING:
    from pytest_llmperf.model.review import Review

_ABOUT = """\
Computes every metric of saved runs again from their columns (records.npz) and says where one differs from what is
stored: it was saved by another version, or a file is damaged. A folder of runs is summed up by case; runs that are
named one by one are shown in full. Raw responses that were kept (keep_raw: all) are parsed again, and compared with
the columns. Reads only.

Exit status: 0 all as stored, 10 something differs, 2 something is unreadable.
"""


def add(commands: Any) -> None:
    """Add the command to the parsers of ``llmperf``."""
    parser = commands.add_parser(
        "report",
        help="what saved runs say, computed again from their raw stamps",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths", type=Path, nargs="*", default=[Path(".llmperf")], metavar="RUN_FOLDER|.llmperf",
        help="folders of runs, or of a session's runs; default .llmperf",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one document with every figure of every run")
    parser.set_defaults(run=_report)


def _report(arguments: argparse.Namespace) -> int:
    from pytest_llmperf.pipeline import saved  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.reports import saved_runs  # noqa: PLC0415

    whole: list[Review] = []
    summed: list[Review] = []
    unreadable: dict[str, str] = {}
    for path in arguments.paths:
        folders = saved.find_runs(path)
        single = folders == [path] or path.is_file()
        (whole if single else summed).extend(_read(folders, unreadable))
    if arguments.json:
        print(saved_runs.render_json([*whole, *summed], unreadable), end="")
    else:
        _print(line for review in whole for line in (*saved_runs.render_run(review), ""))
        _print(saved_runs.render_cases(summed))
    for why in unreadable.values():
        print(why, file=sys.stderr)
    return _status([*whole, *summed], unreadable)


def _read(folders: Iterable[Path], unreadable: dict[str, str]) -> list[Review]:
    """The reviews of those that can be read; the others are noted: one bad folder hides no other."""
    from pytest_llmperf.errors import SavedRunError  # noqa: PLC0415
    from pytest_llmperf.pipeline.review import review  # noqa: PLC0415
    from pytest_llmperf.pipeline.saved import read_run  # noqa: PLC0415

    reviews = []
    for folder in folders:
        try:
            reviews.append(review(read_run(folder)))
        except SavedRunError as error:
            unreadable[str(folder)] = str(error)
    return reviews


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _status(reviews: Sequence[Review], unreadable: dict[str, str]) -> int:
    if unreadable:
        return USAGE
    return FINE if all(review.agrees for review in reviews) else UNFIT
