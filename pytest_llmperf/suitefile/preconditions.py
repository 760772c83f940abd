"""Preconditions: what a suite expects of the machine, by the names of its checks."""

from __future__ import annotations

from pytest_llmperf.checks.answers import unusable
from pytest_llmperf.checks.conditions import CONDITIONS, VARIABLE
from pytest_llmperf.model.expectation import Expectation, Expected, as_text
from pytest_llmperf.model.finding import Policy
from pytest_llmperf.registry import did_you_mean
from pytest_llmperf.suitefile.document import KeyPath
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.keys import PreconditionKeys, PreconditionsKeys

_TAKES_NAMES = "foreign_processes"


def resolve_preconditions(draft: Draft, keys: PreconditionsKeys) -> dict[str, Expectation]:
    """By name of the check; one of a variable is called ``env.NAME``."""
    found = {}
    for path, name, entry in _entries(draft, keys):
        expectation = _expectation(draft, path, name, entry)
        if expectation is not None:
            found[name] = expectation
    return found


def _entries(draft: Draft, keys: PreconditionsKeys) -> list[tuple[KeyPath, str, PreconditionKeys]]:
    entries = []
    for name, entry in (keys.model_extra or {}).items():
        path: KeyPath = ("preconditions", name)
        if name in CONDITIONS:
            entries.append((path, name, entry))
        else:
            draft.report(path, f"no check is called {name!r}{did_you_mean(name, [*CONDITIONS, 'strict', 'env'])}")
    for name, entry in (keys.env or {}).items():
        entries.append((("preconditions", "env", name), f"{VARIABLE}{name}", entry))
    return entries


def _expectation(draft: Draft, path: KeyPath, name: str, entry: PreconditionKeys) -> Expectation | None:
    stated: list[tuple[str, Policy, Expected | None]] = []
    if entry.require is not None:
        stated.append(("require", "require", entry.require))
    if entry.warn is not None:
        stated.append(("warn", "warn", entry.warn))
    if entry.policy is not None:
        stated.append(("policy", entry.policy, None))
    if len(stated) > 1:
        draft.report(path, f"{' and '.join(key for key, *_ in stated)} exclude each other; write one")
        return None
    if not stated and not entry.allow:
        if draft.is_wrong(path):  # what was written was taken out
            return None
        draft.report(path, "needs what must be, such as {require: VALUE}, or a policy, such as compare")
        return None
    if entry.allow and name != _TAKES_NAMES:
        draft.report((*path, "allow"), f"means nothing to {name}; it is a part of {_TAKES_NAMES}")
    key, policy, value = stated[0] if stated else ("", None, None)
    if value is not None and (why := unusable(name, value)):
        draft.report((*path, key), f"{as_text(value)!r} {why}" if why.startswith("must") else why)
        return None
    return Expectation(
        policy=policy,
        value=None if value is None else as_text(value),
        allow=tuple(entry.allow or ()),
        reason=entry.reason or "",
    )
