"""``llmperf doctor``: is this machine fit to measure?"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from pytest_llmperf.cli.interruption import interrupted_by_sigterm
from pytest_llmperf.cli.status import FINE, UNFIT

_ABOUT = """\
Checks whether this machine is fit to measure, in about 20 s. Reads only, and starts nothing but processes of its own
that it ends. The load client is tested against servers of ours on this machine that stream at a known pace; what a run
would call INVALID is INVALID here.

Exit status: 0 fit, 10 not fit.
"""


def add(commands: Any) -> None:
    """Add the command to the parsers of ``llmperf``."""
    parser = commands.add_parser(
        "doctor",
        help="is this machine fit to measure?",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="one document with every check and every figure")
    parser.set_defaults(run=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    from pytest_llmperf.pipeline.doctor import examine  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.reports import diagnosis  # noqa: PLC0415

    interrupted_by_sigterm()
    found = examine(show=_show)
    text = diagnosis.render_json(found) if arguments.json else "\n".join(diagnosis.render(found)) + "\n"
    print(text, end="")
    return FINE if found.fit else UNFIT


def _show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
