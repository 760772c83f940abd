"""The concerns of an audit, as lines for a terminal and as one JSON document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_llmperf.model.concern import Concern

SCHEMA = 1
"""Raised when a reader of an older document would misread a newer one."""


def render(concerns: Sequence[Concern]) -> Iterator[str]:
    """Of each its kind, its place, case and metrics; below, what is wrong and what to do."""
    for each in concerns:
        about = "   ".join(part for part in (each.place, each.case, ", ".join(each.metrics)) if part)
        yield f"{each.kind:<12}   {about}"
        yield from (f"{'':<12}   {line}" for line in each.what.splitlines())
        yield f"{'':<12}   -> {each.remedy}"


def summary(concerns: Sequence[Concern], cases: int, files: int) -> str:
    """How much was looked at, and how many concerns there are of each kind."""
    counts = Counter(each.kind for each in concerns)
    found = ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "nothing to do"
    looked = f"{cases} case{'s' * (cases != 1)} on stored baselines, {files} file{'s' * (files != 1)}"
    return f"{looked}: {found}"


def render_json(concerns: Sequence[Concern], cases: int, files: int) -> str:
    """``{"schema", "cases", "files", "concerns": [...]}``."""
    document = {"schema": SCHEMA, "cases": cases, "files": files, "concerns": [each.to_dict() for each in concerns]}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"
