"""What the command line selects, checked over all suites of a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_llmperf.errors import UsageError, shown
from pytest_llmperf.model.suite import Suite
from pytest_llmperf.registry import did_you_mean
from pytest_llmperf.suitefile.document import parse
from pytest_llmperf.suitefile.vocabulary import known_paths


def check_engines(engines: Iterable[str], suites: Sequence[Suite]) -> None:
    """Every name must be an arm of at least one suite.

    Raises:
        UsageError: one is not; the text guesses which arm was meant.
    """
    known = {arm for suite in suites for arm in suite.arms}
    for name in engines:
        if name not in known:
            raise UsageError(f"--llmperf-engine: no suite has an arm {name!r}{did_you_mean(name, known)}")


def check_names(suites: Sequence[Suite]) -> None:
    """No two suites have one name: their baselines would be one, too.

    Raises:
        UsageError: two have.
    """
    files: dict[str, Path] = {}
    for suite in suites:
        if files.setdefault(suite.name, suite.file) != suite.file:
            raise UsageError(
                f"{shown(files[suite.name])} and {shown(suite.file)} are both called {suite.name!r}, and would"
                " have the same baselines: rename one of them"
            )


def check_pair(pair: tuple[str, str], suites: Sequence[Suite]) -> None:
    """At least one suite must have both arms of an A/B.

    Raises:
        UsageError: none has; the text says which arm is missing, or that no suite has both.
    """
    known = {arm for suite in suites for arm in suite.arms}
    for name in pair:
        if name not in known:
            raise UsageError(f"--llmperf-ab: no suite has an arm {name!r}{did_you_mean(name, known)}")
    if not any(set(pair) <= suite.arms.keys() for suite in suites):
        raise UsageError(f"--llmperf-ab: no suite has both arms, {pair[0]!r} and {pair[1]!r}")


def check_overrides(overrides: Mapping[str, str], suites: Sequence[Suite]) -> None:
    """Every override must have applied to at least one suite.

    Raises:
        UsageError: one did not; the text guesses which path was meant. Reads the suite files again for that.
    """
    applied = {key for suite in suites for key in suite.overrides}
    for key, value in overrides.items():
        if key not in applied:
            texts = ((suite.file.read_text(encoding="utf-8"), str(suite.file)) for suite in suites)
            known = {path for text, file in texts for path in known_paths(parse(text, file).data)}
            raise UsageError(f"--llmperf-set {key}={value}: no suite has {key!r}{did_you_mean(key, known)}")
