"""``llmperf prove``: shows of every gate of a suite that it can turn red."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmperf.cli.interruption import interrupted_by_sigterm
from pytest_llmperf.cli.status import FINE, REGRESSION
from pytest_llmperf.cli.suites import suites_at

if TYPE_CHECKING:
    from pytest_llmperf.model.case import Case

_REVISION = "git:"
_ABOUT = """\
Makes a loss of twice its margin under every gate (a margin of 5 % is tried with a loss of 9.75 % or a rise of 10.25 %)
and lists the gates that did not turn red. The loss is made in the traffic between client and engine, or in the engine,
and is measured and judged like any other. Gates on stored baselines need them.

Exit status: 0 every gate turned red, 1 one did not, or nothing could be injected for it, 2 usage.
"""


def add(commands: Any) -> None:
    """Add the command to the parsers of ``llmperf``."""
    parser = commands.add_parser(
        "prove",
        help="shows of every gate of a suite that it can turn red",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suites", type=Path, nargs="+", metavar="SUITE", help="suite files, or folders of them")
    parser.add_argument("--engine", action="append", default=[], metavar="ARM", help="only this arm; repeatable")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as --llmperf-set; repeatable")
    parser.add_argument(
        "--baselines",
        default="baselines",
        metavar="DIR|git:REF",
        help="default baselines/; git:REF for what that held at a git revision",
    )
    parser.add_argument("--save", type=Path, default=Path(".llmperf"), metavar="DIR", help="default .llmperf/")
    parser.set_defaults(run=_prove)


def _prove(arguments: argparse.Namespace) -> int:
    from pytest_llmperf.model.proof import Proof, State  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.pipeline.campaign import Campaign  # noqa: PLC0415
    from pytest_llmperf.pipeline.prove import prove  # noqa: PLC0415
    from pytest_llmperf.reports import proofs  # noqa: PLC0415

    interrupted_by_sigterm()
    cases = _cases(arguments)
    found: list[Proof] = []
    with _baselines(arguments.baselines) as baselines:
        campaign = Campaign(
            baselines=baselines,
            revision=arguments.baselines if arguments.baselines.startswith(_REVISION) else "",
            save=arguments.save,
            seed=secrets.randbits(48),
            accept="none",
            why="",
            endpoint=None,
            arguments="",
            family=len(cases),
            show=_show,
        )
        try:
            for proof in prove(campaign, cases):
                found.append(proof)
                _show("")
                for line in proofs.render(proof):
                    print(line, flush=True)
        finally:
            campaign.close()
    print(proofs.summary(found))
    return FINE if all(proof.state is State.ALIVE for proof in found) else REGRESSION


@contextmanager
def _baselines(named: str) -> Iterator[Path]:
    """The folder of the baselines; those of a revision are written into one of their own, and removed again.

    Raises:
        UsageError: no such revision, or no repository.
    """
    if not named.startswith(_REVISION):
        yield Path(named)
        return
    from pytest_llmperf.baseline.revision import check_out  # noqa: PLC0415 (--help answers at once)

    with tempfile.TemporaryDirectory(prefix="llmperf-baselines-") as folder:
        yield check_out(Path("baselines"), named.removeprefix(_REVISION), Path(folder))


def _cases(arguments: argparse.Namespace) -> Sequence[Case]:
    """The gated cases of the suites.

    Raises:
        UsageError: there is none, or a name that no suite knows.
        SuiteError: a suite with mistakes.
    """
    from pytest_llmperf import suitefile  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.errors import UsageError  # noqa: PLC0415

    overrides = suitefile.read_overrides(arguments.set)
    suites = suites_at(arguments.suites, overrides)
    suitefile.check_engines(arguments.engine, suites)
    suitefile.check_overrides(overrides, suites)
    cases = [case for suite in suites for case in suitefile.expand_known(suite, arguments.engine) if case.gates]
    if not cases:
        raise UsageError("there is no gate to prove")
    return cases


def _show(text: str) -> None:
    """What is going on now, on a terminal only: a line that is rewritten."""
    if sys.stderr.isatty():
        print(f"\r\x1b[2K  {text}" if text else "\r\x1b[2K", end="", file=sys.stderr, flush=True)
