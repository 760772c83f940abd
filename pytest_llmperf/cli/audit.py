"""``llmperf baseline audit``: are the stored baselines, and the gates on them, still worth something?"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmperf.cli.saved import cases_at
from pytest_llmperf.cli.status import FINE, REGRESSION
from pytest_llmperf.cli.suites import suites_at

if TYPE_CHECKING:
    from pytest_llmperf.baseline import Store
    from pytest_llmperf.model.case import Case
    from pytest_llmperf.model.concern import Concern
    from pytest_llmperf.model.suite import Suite
    from pytest_llmperf.pipeline.saved_cases import SavedCase

SUITES, RUNS = Path("suites"), Path(".llmperf")

_ABOUT = """\
Looks at every gate on a stored baseline and at every file of the store: baselines that are missing, broken, stale, of
another workload, or that no case has; gates that cannot see their margin, that nobody calibrated, or that judge
nothing; quarantines and published numbers that have expired; and, from saved runs, what was IMPROVED for seven nights
and never accepted. Starts nothing.

A suite that needs GPUs which this machine has not is looked at for the hardware that has baselines of it.

Exit status: 0, or 1 with --fail where there is something; 2 usage.
"""


def add(actions: Any) -> None:
    """Add the action to the parsers of ``llmperf baseline``."""
    parser = actions.add_parser(
        "audit",
        help="missing, broken, stale baselines; gates that see nothing; gains that nobody accepted",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "suites", type=Path, nargs="*", metavar="SUITE", help="files or folders (default: all of suites/)"
    )
    parser.add_argument("--baselines", type=Path, default=Path("baselines"), metavar="DIR", help="default baselines/")
    parser.add_argument("--runs", type=Path, metavar="DIR", help="saved runs (default: .llmperf/, where there is one)")
    parser.add_argument("--hardware", action="append", default=[], metavar="SLUG", help="instead of this machine's")
    parser.add_argument("--stale-days", type=int, default=90, metavar="N", help="age of a stale baseline (default 90)")
    parser.add_argument(
        "--fail", nargs="?", const="", metavar="KIND,…",
        help="exit 1 where there is a concern that costs verdicts, or one of these kinds: --fail=missing,stale",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one document with every concern")
    parser.set_defaults(run=_audit)


def _audit(arguments: argparse.Namespace) -> int:
    from pytest_llmperf.baseline import Store  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.clock import CLOCK  # noqa: PLC0415
    from pytest_llmperf.errors import UsageError  # noqa: PLC0415
    from pytest_llmperf.pipeline import audit  # noqa: PLC0415
    from pytest_llmperf.reports import concerns  # noqa: PLC0415

    if arguments.stale_days < 1:
        raise UsageError(f"--stale-days {arguments.stale_days}: at least one")
    failing = _failing(arguments.fail)
    store = Store(arguments.baselines)
    scope = audit.Scope(
        suites=_suites(arguments.suites or [SUITES]),
        hardware=_hardware(arguments.hardware, store),
        whole=not arguments.suites,
    )
    entries = store.entries()
    found = audit.audit(
        scope, entries, _saved(arguments.runs), today=CLOCK.utc_now().date(), stale_days=arguments.stale_days
    )
    if arguments.json:
        print(concerns.render_json(found, len(scope.cases), len(entries)), end="")
    else:
        for line in concerns.render(found):
            print(line)
        print(concerns.summary(found, len(scope.cases), len(entries)))
    return REGRESSION if _fails(found, failing) else FINE


def _failing(written: str | None) -> frozenset[str]:
    """The kinds that ``--fail`` means."""
    from pytest_llmperf.errors import UsageError  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.model.concern import ADVICE, Kind  # noqa: PLC0415
    from pytest_llmperf.registry import did_you_mean  # noqa: PLC0415

    if written is None:
        return frozenset()
    named = [name.strip() for name in written.split(",") if name.strip()]
    for name in named:
        if name not in set(Kind):
            raise UsageError(f"--fail={name}: unknown kind{did_you_mean(name, map(str, Kind))}")
    return frozenset(named) or frozenset(set(Kind) - ADVICE)


def _fails(found: Sequence[Concern], failing: frozenset[str]) -> bool:
    return any(each.kind in failing for each in found)


def _saved(named: Path | None) -> list[SavedCase]:
    """The saved runs; where nobody names any, there need not be one."""
    from pytest_llmperf.errors import UsageError  # noqa: PLC0415 (--help answers at once)

    if named is not None:
        return cases_at([named])
    with contextlib.suppress(UsageError):
        return cases_at([RUNS])
    return []


def _suites(paths: Sequence[Path]) -> list[Suite]:
    """Raises UsageError where there is no suite, SuiteError for one with mistakes."""
    from pytest_llmperf import suitefile  # noqa: PLC0415 (--help answers at once)

    suites = suites_at(paths, overrides={})
    suitefile.check_names(suites)
    return suites


def _hardware(named: Sequence[str], store: Store) -> Callable[[Case], Sequence[str]]:
    """The slugs on which a case should have a baseline."""
    from pytest_llmperf.checks.comparability import ANY_HARDWARE  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.pipeline.hardware import slug_here  # noqa: PLC0415
    from pytest_llmperf.telemetry import nvml  # noqa: PLC0415
    from pytest_llmperf.telemetry.host import slug  # noqa: PLC0415

    gpus = () if named else nvml.names()

    def of(case: Case) -> Sequence[str]:
        if named:
            return named
        if (here := slug_here(case, gpus)) is not None:
            return [here]
        wanted = case.suite.hardware
        known = [
            name for name in store.hardware() if name != ANY_HARDWARE and (store.root / name / case.suite.name).is_dir()
        ]
        return known or [slug(f"{wanted.count}x {wanted.gpu}")]

    return of
