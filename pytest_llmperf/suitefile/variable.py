"""``${VAR}``: values that differ from machine to machine, in the few places where that is allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_llmperf.suitefile.document import KeyPath
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.vocabulary import variable_fields

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def substitute(draft: Draft, environ: Mapping[str, str]) -> None:
    """Replace every ``${VAR}``; report the unset, the empty, the malformed and those in a place that takes none.

    What is unset in an arm, or in the model, is deferred: it concerns the arms that need it, once they are to run. A
    key without a value is reported here too: YAML reads it as null, which no key takes.
    """
    wrong = []
    for path, value in draft.values():
        mistakes = _mistakes(draft, path, value)
        unset = [] if mistakes else _unset(value, environ)
        if unset and (path[0] == "engines" or _is_model_path(path)):
            draft.defer(path, unset)
            continue
        for mistake in [*mistakes, *unset]:
            draft.report(path, mistake)
        if mistakes or unset:
            wrong.append(path)
        elif isinstance(value, str) and "${" in value:
            draft.put(path, _VARIABLE.sub(lambda match: environ[match[1]], value))
    for path in wrong:
        draft.remove(path)


def _mistakes(draft: Draft, path: KeyPath, value: Any) -> list[str]:
    if value is None:
        return ["has no value; write one, or remove the key"]
    if any("${" in step for step in path if isinstance(step, str)):
        return ["a key may not hold ${VAR}"]
    if not (isinstance(value, str) and "${" in value):
        return []
    return _misplaced(draft, path, value) or _malformed(value)


def _misplaced(draft: Draft, path: KeyPath, value: str) -> list[str]:
    if _is_model_path(path) or _is_data_path(path):
        return []
    if len(path) == 3 and path[0] == "engines":  # noqa: PLR2004 (engines.ARM.KEY)
        fields = variable_fields(draft.data, str(path[1]))
        if fields is None or path[2] in fields:  # an unknown engine is a mistake of its own
            return []
    allowed = {field for arm in draft.names("engines") for field in variable_fields(draft.data, arm) or ()}
    places = ["model.path", "workloads.NAME.path", "trace.path", *(f"engines.ARM.{field}" for field in sorted(allowed))]
    return [f"{value!r}: ${{VAR}} is not allowed here, only in {', '.join(places[:-1])} and {places[-1]}"]


def _is_model_path(path: KeyPath) -> bool:
    return path == ("model", "path") or (path[:1] == ("engines",) and path[2:] == ("model", "path"))


def _is_data_path(path: KeyPath) -> bool:
    """Of a workload's data, or of the trace of a load, wherever that is written."""
    trace = path[-2:] == ("trace", "path") and path[0] in {"load", "loads", "workloads"}
    return trace or (path[:1] == ("workloads",) and path[2:] == ("path",))


def _malformed(value: str) -> list[str]:
    if "${" in _VARIABLE.sub("", value):
        return [f"{value!r}: write a variable as ${{NAME}}, with letters, digits and _"]
    return []


def _unset(value: Any, environ: Mapping[str, str]) -> list[str]:
    names = dict.fromkeys(_VARIABLE.findall(value)) if isinstance(value, str) else {}
    return [f"${{{name}}} is {'empty' if name in environ else 'not set'}" for name in names if not environ.get(name)]
