"""The results of a session as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_llmperf import __version__
from pytest_llmperf.model.result import CaseResult

SCHEMA = 1
"""Raised when a reader of an older document would misread a newer one."""


def render(results: Sequence[CaseResult]) -> str:
    """``{"schema", "pytest_llmperf", "cases": [...]}``; every case as ``CaseResult.to_dict`` gives it."""
    document = {
        "schema": SCHEMA,
        "pytest_llmperf": __version__,
        "cases": [result.to_dict() for result in results],
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"
