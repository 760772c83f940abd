"""The command line: one table of options, and the same values checked and typed."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.verdict import Word

if TYPE_CHECKING:
    from pytest_llmperf.model.injection import Injection
    from pytest_llmperf.model.suite import Arm, Suite

FAIL_ON = "regressed,failed,invalid,no-baseline"
_REVISION = "git:"
_FAILABLE = {
    "regressed": Word.REGRESSED,
    "failed": Word.FAILED,
    "invalid": Word.INVALID,
    "no-baseline": Word.NO_BASELINE,
    "inconclusive": Word.INCONCLUSIVE,
}


def add(parser: pytest.Parser) -> None:
    """Declare every option; docs/options.md lists them, and a test compares the two."""
    group = parser.getgroup("llmperf", "performance of LLM serving engines")
    group.addoption(
        "--llmperf-engine",
        action="append",
        default=[],
        metavar="ARM[,ARM]",
        help="run only these arms of the suites, also ones that are not default",
    )
    group.addoption(
        "--llmperf-endpoint",
        metavar="URL",
        help="measure the server at URL instead of starting the arm's engine; in-session references still start",
    )
    group.addoption(
        "--llmperf-set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override one value of the suites for this session, such as workloads.words.requests=64",
    )
    group.addoption(
        "--llmperf-seed",
        type=int,
        metavar="N",
        help="seed of prompts and arrivals; fresh every session by default, so that no cache can know the prompts",
    )
    group.addoption(
        "--llmperf-baselines",
        metavar="DIR|git:REF",
        help="folder of the baselines (default: baselines/ in the rootdir), or what that held at a git revision",
    )
    group.addoption(
        "--llmperf-accept",
        choices=("none", "missing", "all"),
        default="none",
        help="record what is measured as the baseline: where there is none (missing), everywhere (all); needs a reason",
    )
    group.addoption("--llmperf-why", metavar="TEXT", help="the reason that is stored with an accepted baseline")
    group.addoption(
        "--llmperf-ab",
        metavar="A,B",
        help="judge the arm B against the arm A, run by turns on this machine, each run on a fresh start",
    )
    group.addoption(
        "--llmperf-inject",
        metavar="LOSS",
        help="make a loss on purpose, to see the gates notice it: ttft=+20%%, tpot=+10%%, e2el=+10%%, throughput=-10%%,"
        " acceptance=-0.1, stall, drop or error",
    )
    group.addoption(
        "--llmperf-report",
        action="append",
        default=[],
        metavar="KIND:PATH",
        help="write a report at the end of the session, such as json:results.json; repeatable",
    )
    group.addoption("--llmperf-save", metavar="DIR", help="folder of the saved runs (default: .llmperf in the rootdir)")
    group.addoption(
        "--llmperf-fail-on",
        default=FAIL_ON,
        metavar="WORDS",
        help=f"outcomes that turn the session red (default: {FAIL_ON}; also: inconclusive)",
    )
    group.addoption(
        "--llmperf-plan", action="store_true", help="show cases, commands and order; start nothing, measure nothing"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one session, checked."""

    engines: tuple[str, ...]
    ab: tuple[str, str] | None
    endpoint: str | None
    overrides: dict[str, str]
    seed: int
    baselines: Path
    named_baselines: str | None
    accept: Literal["none", "missing", "all"]
    why: str
    inject: Injection | None
    reports: tuple[tuple[str, Path], ...]
    save: Path
    fail_on: frozenset[Word]
    plan: bool

    @property
    def revision(self) -> str:
        """``git:REF`` where the baselines are those of one, else ""."""
        named = self.named_baselines or ""
        return named if named.startswith(_REVISION) else ""

    @property
    def again(self) -> str:
        """The options that choose the same subject, values and baselines, to be shown with a result."""
        chosen = [f"--llmperf-engine={','.join(self.engines)}"] if self.engines else []
        chosen += [f"--llmperf-ab={','.join(self.ab)}"] if self.ab else []
        chosen += [f"--llmperf-endpoint={self.endpoint}"] if self.endpoint else []
        chosen += [f"--llmperf-set={key}={value}" for key, value in self.overrides.items()]
        chosen += [f"--llmperf-baselines={self.named_baselines}"] if self.named_baselines else []
        chosen += [f"--llmperf-inject={self.inject}"] if self.inject else []
        return shlex.join(chosen)


_KEY = pytest.StashKey[Options]()


def check(config: pytest.Config) -> None:
    """Read and check the options, before anything is collected.

    Raises:
        pytest.UsageError: a value that cannot be obeyed; the text names the option and what would be right.
    """
    try:
        config.stash[_KEY] = _read(config)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def of(config: pytest.Config) -> Options:
    """The session's options."""
    return config.stash[_KEY]


def check_against(options: Options, suites: Sequence[Suite]) -> None:
    """Complain of arms and overrides that none of the session's suites knows.

    Raises:
        pytest.UsageError: there is one; the text guesses what was meant.
    """
    from pytest_llmperf import suitefile  # noqa: PLC0415 (only with suites)

    try:
        suitefile.check_names(suites)
        suitefile.check_engines(options.engines, suites)
        if options.ab is not None:
            suitefile.check_pair(options.ab, suites)
        suitefile.check_overrides(options.overrides, suites)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def check_injection(options: Options, arms: Iterable[Arm]) -> None:
    """Complain of a loss of acceptance that an arm's engine cannot have.

    Raises:
        pytest.UsageError: there is one.
    """
    if options.inject is None or options.inject.kind != "acceptance":
        return
    from pytest_llmperf.engines.base import losing  # noqa: PLC0415 (only when something is injected)

    try:
        for arm in arms:
            losing(replace(arm, engine="external") if options.endpoint else arm, options.inject)
    except UsageError as error:
        raise pytest.UsageError(f"--llmperf-inject: {error}") from None


def _read(config: pytest.Config) -> Options:
    if config.getoption("llmperf_plan") and config.getoption("numprocesses", None):
        raise UsageError("--llmperf-plan shows the plan of one process; leave out -n")
    accept, why = config.getoption("llmperf_accept"), config.getoption("llmperf_why") or ""
    if accept != "none" and not why.strip():
        raise UsageError(
            f"--llmperf-accept={accept} needs --llmperf-why='the reason', which is stored with the baseline"
        )
    seed = config.getoption("llmperf_seed")
    return Options(
        engines=tuple(name.strip() for value in config.getoption("llmperf_engine") for name in value.split(",")),
        ab=_ab(config, accept),
        endpoint=_endpoint(config.getoption("llmperf_endpoint")),
        overrides=_overrides(config.getoption("llmperf_set")),
        seed=int.from_bytes(os.urandom(6), "big") if seed is None else seed,
        baselines=_baselines(config, accept),
        named_baselines=config.getoption("llmperf_baselines"),
        accept=accept,
        why=why.strip(),
        inject=_inject(config.getoption("llmperf_inject"), accept),
        reports=_reports(config.getoption("llmperf_report"), config.invocation_params.dir),
        save=config.invocation_params.dir / (config.getoption("llmperf_save") or config.rootpath / ".llmperf"),
        fail_on=_fail_on(config.getoption("llmperf_fail_on")),
        plan=config.getoption("llmperf_plan"),
    )


def _endpoint(value: str | None) -> str | None:
    """The base URL, by the rules of an arm of the external engine; a refused one is not repeated, it may be secret."""
    if value is None:
        return None
    from pydantic import ValidationError  # noqa: PLC0415 (only when an endpoint is given)

    from pytest_llmperf.engines.external import ExternalOptions  # noqa: PLC0415

    try:
        return ExternalOptions(url=value).url
    except ValidationError as error:
        why = error.errors(include_url=False, include_input=False)[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"--llmperf-endpoint: {why} (an API key belongs into the variable LLMPERF_API_KEY)") from None


def _ab(config: pytest.Config, accept: str) -> tuple[str, str] | None:
    value = config.getoption("llmperf_ab")
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(","))
    if len(names) != 2 or not all(names) or names[0] == names[1]:  # noqa: PLR2004 (A and B)
        raise UsageError(f"--llmperf-ab={value}: write two arms of the suite, as A,B; B is judged against A")
    others = {"llmperf_engine": "--llmperf-engine", "llmperf_endpoint": "--llmperf-endpoint"}
    if given := [name for key, name in others.items() if config.getoption(key)]:
        raise UsageError(f"--llmperf-ab={value} names the arms already; leave out {given[0]}")
    if accept != "none":
        raise UsageError(f"--llmperf-ab={value} compares two arms, no baseline is involved; leave out --llmperf-accept")
    return names[0], names[1]


def _baselines(config: pytest.Config, accept: str) -> Path:
    named, usual = config.getoption("llmperf_baselines"), config.rootpath / "baselines"
    if not (named or "").startswith(_REVISION):
        return config.invocation_params.dir / (named or usual)
    from pytest_llmperf.baseline.revision import check_out  # noqa: PLC0415 (only when a revision is asked for)

    if accept != "none":
        raise UsageError(f"--llmperf-baselines={named} is only read; leave out --llmperf-accept")
    folder = tempfile.mkdtemp(prefix="llmperf-baselines-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    return check_out(usual, named.removeprefix(_REVISION), Path(folder))


def _inject(value: str | None, accept: str) -> Injection | None:
    if value is None:
        return None
    from pytest_llmperf.model import injection  # noqa: PLC0415 (only when something is injected)

    if accept != "none":
        raise UsageError(f"--llmperf-inject={value}: a loss made on purpose cannot become a baseline; leave one out")
    return injection.parse(value)


def _overrides(values: Sequence[str]) -> dict[str, str]:
    if not values:
        return {}
    from pytest_llmperf.suitefile import read_overrides  # noqa: PLC0415 (only when something is overridden)

    return read_overrides(values)


def _reports(values: Sequence[str], folder: Path) -> tuple[tuple[str, Path], ...]:
    from pytest_llmperf import registry  # noqa: PLC0415 (only when a report is asked for)

    reports = []
    for value in values:
        kind, colon, path = value.partition(":")
        if not colon or not path:
            raise UsageError(f"--llmperf-report={value}: write KIND:PATH; kinds: {', '.join(registry.names('report'))}")
        registry.load("report", kind)
        reports.append((kind, folder / path))
    return tuple(reports)


def _fail_on(value: str) -> frozenset[Word]:
    words = [word.strip() for word in value.split(",") if word.strip()]
    unknown = [word for word in words if word not in _FAILABLE]
    if unknown:
        raise UsageError(f"--llmperf-fail-on={value}: {unknown[0]!r} is none of {', '.join(_FAILABLE)}")
    return frozenset(_FAILABLE[word] for word in words)
