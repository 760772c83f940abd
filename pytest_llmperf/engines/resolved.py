"""Resolved values: what a server says that it runs, as text by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_llmperf.model.expectation import as_text
from pytest_llmperf.model.redaction import redacted_value

DEEPEST = 8
"""Levels of nesting that are looked into."""


def flattened(answer: Any) -> dict[str, str]:
    """The scalars of an answer: those of nested mappings under dotted names, those of secrets hidden; null is none.

    Lists are left out, but for the mappings in them, which share their names: their values are known where they agree.
    """
    found: dict[str, set[str]] = {}
    _collect(answer, (), found)
    return {name: next(iter(values)) for name, values in found.items() if len(values) == 1}


def _collect(value: Any, path: tuple[str, ...], found: dict[str, set[str]]) -> None:
    if len(path) > DEEPEST:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _collect(inner, (*path, str(key)), found)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, Mapping):
                _collect(inner, path, found)
    elif path:
        text = "none" if value is None else as_text(value)
        found.setdefault(".".join(path), set()).add(redacted_value(path[-1], text))
