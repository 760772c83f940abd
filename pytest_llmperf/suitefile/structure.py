"""The structure of a suite file: every key known, every value of its type; and what is wrong in words."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pytest_llmperf.registry import did_you_mean
from pytest_llmperf.suitefile.document import KeyPath
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.keys import SuiteKeys
from pytest_llmperf.suitefile.merged import Merged
from pytest_llmperf.suitefile.vocabulary import keys_of, known_keys

_TEXTS = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "literal_error": "must be {expected}",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must match {pattern}",
    "too_short": "must hold at least {min_length}",
    "list_type": "must be a list, such as [a, b]",
    "tuple_type": "must be a list, such as [a, b]",
    "dict_type": "must be a mapping, such as {{key: value}}",
    "model_type": "must be a mapping, such as {{key: value}}",
    "value_error": "{error}",
}

_CREDENTIALS = re.compile(r"//[^/@\s]+@")
"""Of a URL; what is printed may end up in a CI log."""


def validate(draft: Draft) -> SuiteKeys:
    """The keys of the suite; every value with a mistake is reported and taken out of the draft."""
    while True:
        try:
            return SuiteKeys.model_validate(draft.data)
        except ValidationError as error:
            problems = error.errors(include_url=False)
        written = []
        for problem in problems:
            path = problem["loc"]
            known = known_keys(draft.data, path[:-1])
            written.append(draft.report(path, explain(problem, known)))
            excuse_guess(draft, problem, path, known)
        for path in written:  # each of them exists, so every round leaves less to complain of
            draft.remove(path)


def check(draft: Draft, kind: type[BaseModel], merged: Merged, common: set[str], arm: str) -> None:
    """Report what an adapter's ``kind`` finds wrong in the keys that are not ``common``, each where it is written.

    A key may have been written for another arm: one that inherits it, or shares the suite's model, may not take it.
    """
    known = common | keys_of(kind)
    try:
        kind.model_validate(merged.without(common))
    except ValidationError as error:
        problems = error.errors(include_url=False)
    else:
        return
    for problem in problems:
        key, *rest = problem["loc"] or ("",)
        if problem["type"] == "missing" and any(draft.is_excused((*home, key)) for home in merged.homes):
            continue
        if not problem["loc"] and any(draft.has_lost(home) for home in merged.homes):
            continue  # a rule on several keys, of which one was taken out
        if key not in merged.origins:
            draft.report(merged.homes[-1], explain(problem, known))
            continue
        path: KeyPath = (*merged.origins[str(key)], *rest)
        if problem["type"] == "extra_forbidden" and key in known_keys(draft.data, path[:-1]):
            draft.report(path, f"means nothing to the engine of arm {arm!r}; write it only for the arms that take it")
        elif not draft.is_wrong(path):  # else another arm's adapter said it already
            excuse_guess(draft, problem, path, known)
            draft.report(path, explain(problem, known))


def explain(problem: ErrorDetails, known: Collection[str]) -> str:
    """One of pydantic's errors in the words of a suite's author: the value, and what would be right."""
    kind, value = problem["type"], problem["input"]
    if kind == "extra_forbidden":
        return f"unknown field{did_you_mean(str(problem['loc'][-1]), known)}"
    if kind == "missing":
        return f"needs {str(problem['loc'][-1])!r}"
    if kind == "string_type":
        quoted = f'; write "{shown(value)}"' if isinstance(value, int | float) else ""
        return f"{shown(value)} must be text{quoted}"
    if kind == "value_error" and isinstance(value, dict):
        return str(problem["ctx"]["error"])
    if kind not in _TEXTS:
        return f"{shown(value)}: {problem['msg']}"
    details = {name: "true" if detail == "True" else detail for name, detail in problem.get("ctx", {}).items()}
    return f"{shown(value)} {_TEXTS[kind].format(**details)}"


def excuse_guess(draft: Draft, problem: ErrorDetails, path: KeyPath, known: Collection[str]) -> None:
    """A key with a typo must not be called missing as well."""
    if problem["type"] == "extra_forbidden":
        for guess in get_close_matches(str(path[-1]), known, n=1):
            draft.excuse((*path[:-1], guess))


def shown(value: Any) -> str:
    """A value as it is written in YAML, shortened: ``true``, ``'some text'``, ``{...}``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{...}" if value else "{}"
    if isinstance(value, list):
        return "[...]" if value else "[]"
    text = _CREDENTIALS.sub("//***@", repr(value))
    return text if len(text) <= 60 else f"{text[:56]}...'"  # noqa: PLR2004
