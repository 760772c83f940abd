"""``llmperf doctor``: is this machine fit to measure?"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmperf.cli.interruption import interrupted_by_sigterm
from pytest_llmperf.cli.status import FINE, UNFIT

if TYPE_CHECKING:
    from pytest_llmperf.model.snapshot import Snapshot
    from pytest_llmperf.model.suite import Suite

_ABOUT = """\
Checks whether this machine is fit to measure, in about 20 s: its GPUs and their settings, who uses them, the host, and
the load client. Reads only, and starts nothing but processes of its own that it ends. The client is tested against
servers of ours on this machine that stream at a known pace; what a run would call INVALID is INVALID here.

Exit status: 0 fit, 2 usage, 10 not fit.
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
    parser.add_argument("--profile", metavar="NAME", help="the hardware that it must be: h200, h100, b200, nvidia, cpu")
    parser.add_argument(
        "--suite", type=Path, metavar="FILE", help="by the preconditions and the hardware of this suite"
    )
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="write what was read, without names, users and secrets, as JSON"
    )
    parser.set_defaults(run=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    from pytest_llmperf.pipeline.doctor import examine  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.reports import diagnosis  # noqa: PLC0415

    interrupted_by_sigterm()
    suite = None if arguments.suite is None else _suite(arguments.suite)
    found = examine(show=_show, as_profile=arguments.profile, suite=suite)
    if arguments.record is not None and found.snapshot is not None:
        _record(found.snapshot, arguments.record)
    text = diagnosis.render_json(found) if arguments.json else "\n".join(diagnosis.render(found)) + "\n"
    print(text, end="")
    return FINE if found.fit else UNFIT


def _suite(path: Path) -> Suite:
    from pytest_llmperf import suitefile  # noqa: PLC0415 (--help answers at once)

    return suitefile.load_suite(path, overrides={}, environ=os.environ)


def _record(snapshot: Snapshot, path: Path) -> None:
    """Write a snapshot as it may be published.

    Raises:
        UsageError: the file cannot be written.
    """
    from pytest_llmperf.errors import UsageError  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.model.redaction import redacted  # noqa: PLC0415

    recorded = replace(redacted(snapshot), origin="recorded")
    try:
        path.write_text(json.dumps(recorded.to_dict(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--record: {path} cannot be written: {error.strerror}") from None


def _show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
