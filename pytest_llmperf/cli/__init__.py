"""The ``llmperf`` command: what needs no test session. One module for each noun or verb.

Exit status: 0 fine, 1 regression, 2 usage, 10 invalid or unfit.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pytest_llmperf import __version__
from pytest_llmperf.cli import baseline, calibrate, compare, doctor, history, prove, report
from pytest_llmperf.cli.status import INTERRUPTED, USAGE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return the exit status."""
    from pytest_llmperf.errors import LlmperfError  # noqa: PLC0415 (--help answers at once)

    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except LlmperfError as error:
        print(error, file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # a reader such as head has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return USAGE
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="llmperf", description="Performance of LLM serving engines.")
    parser.add_argument("--version", action="version", version=f"pytest-llmperf {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    baseline.add(commands)
    doctor.add(commands)
    report.add(commands)
    compare.add(commands)
    calibrate.add(commands)
    history.add(commands)
    prove.add(commands)
    return parser
