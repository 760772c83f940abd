"""Quarantines: which cases and metrics are meant, by whom and until when."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase

from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.quarantine import Quarantine
from pytest_llmperf.model.suite import Suite
from pytest_llmperf.registry import did_you_mean
from pytest_llmperf.suitefile.document import KeyPath
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.expansion import every_id
from pytest_llmperf.suitefile.keys import QuarantineKeys, SuiteKeys

_EXAMPLES = {
    "cases": "'ARM/*'",
    "owner": "a name or a team",
    "why": "what is known of it",
    "until": "2026-12-24",
}
_OF_CASES = ("engines", "workloads", "load", "loads", "matrix")
_OF_GATES = ("gates", "relations")


def resolve_quarantine(draft: Draft, keys: SuiteKeys, suite: Suite) -> tuple[Quarantine, ...]:
    """All entries in the order of the file, whatever day it is: an expired one only has no force any more."""
    if not keys.quarantine:
        return ()
    ids = [] if _in_doubt(draft, _OF_CASES) else every_id(suite)
    gated = set() if _in_doubt(draft, _OF_GATES) else {gate.metric.name for gate in suite.gates}
    entries = ((("quarantine", place), entry) for place, entry in enumerate(keys.quarantine))
    found = [_quarantine(draft, path, entry, ids, gated) for path, entry in entries]
    return tuple(each for each in found if each is not None)


def _in_doubt(draft: Draft, sections: tuple[str, ...]) -> bool:
    return any(draft.is_wrong((section,)) or draft.is_excused((section,)) for section in sections)


def _quarantine(
    draft: Draft, path: KeyPath, entry: QuarantineKeys, ids: list[str], gated: set[str]
) -> Quarantine | None:
    for key, example in _EXAMPLES.items():
        if getattr(entry, key) is None and not draft.is_excused((*path, key)):
            draft.report(path, f"needs {key!r}, such as {key}: {example}")
    for key in ("owner", "why"):
        if (text := getattr(entry, key)) is not None and not _visible(text):
            draft.report((*path, key), f"{text!r} shows nothing; write {_EXAMPLES[key]}")
    if entry.cases is not None and (wrong := _wrong_cases(entry.cases, ids)):
        draft.report((*path, "cases"), wrong)
    for place, name in enumerate(entry.metrics or ()):
        if name not in METRICS:
            draft.report((*path, "metrics", place), f"unknown metric {name!r}{did_you_mean(name, METRICS)}")
        elif gated and name not in gated:
            draft.report((*path, "metrics", place), f"no gate judges {name!r}{did_you_mean(name, gated)}")
    if entry.cases is None or entry.owner is None or entry.why is None or entry.until is None:
        return None
    return Quarantine(
        cases=entry.cases,
        metrics=tuple(entry.metrics or ()),
        owner=entry.owner,
        why=entry.why,
        until=entry.until,
        line=draft.line(path),
    )


def _visible(text: str) -> bool:
    """Whether a reader sees any of it: zero-width characters and controls are not printable."""
    return any(each.isprintable() and not each.isspace() for each in text)


def _wrong_cases(pattern: str, ids: list[str]) -> str:
    """What is wrong with a pattern of cases, "" for nothing. No ids: they are not known."""
    if not any(each.isalnum() for each in pattern):
        return f"{pattern!r} names no arm and no workload, and would excuse the whole suite; write such as 'ARM/*'"
    if "[" in pattern:
        return f"{pattern!r} holds a '['; only * and ? stand for other text"
    if ids and not any(fnmatchcase(each, pattern) for each in ids):
        return f"no case of this suite is {pattern!r}{_guess(pattern, ids)}"
    return ""


def _guess(pattern: str, ids: list[str]) -> str:
    """The closest id or ``ARM/*``; where nothing is close, one id to go by, as there may be thousands."""
    arms = dict.fromkeys(f"{each.partition('/')[0]}/*" for each in ids)
    close = get_close_matches(pattern, [*arms, *ids], n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; its ids are such as {ids[0]!r}"
