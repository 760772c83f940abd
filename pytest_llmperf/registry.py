"""Name to object, imported on first use; ours and third parties' alike.

A plug-in is an entry point in the group ``pytest_llmperf.<kind>`` (for example ``pytest_llmperf.engine``) and is found
after the built-in ones. A wrong name lists what there is and guesses what was meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal

from pytest_llmperf.errors import UsageError

Kind = Literal["engine", "launcher", "report"]

BUILTIN: dict[Kind, dict[str, str]] = {
    "engine": {
        "embedded": "pytest_llmperf.engines.embedded:Embedded",
        "external": "pytest_llmperf.engines.external:External",
    },
    "launcher": {
        "local": "pytest_llmperf.launchers.local:LocalLauncher",
    },
    "report": {
        "json": "pytest_llmperf.reports.json:render",
    },
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the closest known name, else the list of known names."""
    options = sorted(known)
    close = get_close_matches(name, options, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(options)}" if options else ""


@cache
def _targets(kind: Kind) -> dict[str, str]:
    plugged = {point.name: point.value for point in entry_points(group=f"pytest_llmperf.{kind}")}
    return plugged | BUILTIN[kind]


def names(kind: Kind) -> list[str]:
    """All names of one kind, sorted."""
    return sorted(_targets(kind))


@cache
def load(kind: Kind, name: str) -> Any:
    """The object registered under ``name``.

    Raises:
        UsageError: there is no such name; the text guesses which one was meant.
    """
    targets = _targets(kind)
    if name not in targets:
        raise UsageError(f"unknown {kind} {name!r}{did_you_mean(name, targets)}")
    module, _, attribute = targets[name].partition(":")
    return getattr(import_module(module), attribute)
