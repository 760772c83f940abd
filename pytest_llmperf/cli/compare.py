"""``llmperf compare``: saved runs against saved runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_llmperf.cli.saved import cases_at
from pytest_llmperf.cli.status import FINE, REGRESSION, UNFIT

_ABOUT = """\
Judges the saved runs of CANDIDATE against those of REFERENCE, case by case, as a session does against a stored
baseline. Each side is a .llmperf folder, or the folder of one run. One case on each side is compared whatever the two
are called.

Exit status: 0 nothing is worse, 1 something is, 2 usage, 10 nothing could be compared.
"""


def add(commands: Any) -> None:
    """Add the command to the parsers of ``llmperf``."""
    parser = commands.add_parser(
        "compare",
        help="saved runs against saved runs",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("reference", type=Path, metavar="REFERENCE")
    parser.add_argument("candidate", type=Path, metavar="CANDIDATE")
    parser.add_argument(
        "--gate", action="append", default=[], metavar="METRIC[=MARGIN]", help="what to judge; repeatable"
    )
    parser.set_defaults(run=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    from pytest_llmperf.model.verdict import Word  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.pipeline.compare import compare, gate_of  # noqa: PLC0415
    from pytest_llmperf.reports import terminal  # noqa: PLC0415

    gates = [gate_of(text) for text in arguments.gate]
    results = compare(cases_at([arguments.reference]), cases_at([arguments.candidate]), gates)
    for result in results:
        for line in terminal.render(result):
            print(line)
    words = {verdict.word for result in results for verdict in result.verdicts}
    if Word.REGRESSED in words:
        return REGRESSION
    return FINE if words - {Word.INVALID, Word.NO_BASELINE} else UNFIT
