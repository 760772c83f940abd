"""Nights of saved runs, as sessions leave them but for the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.run import Role
from pytest_llmperf.pipeline import archive
from tests.unit.metrics.examples import records, request
from tests.unit.pipeline import fakes, saved_example

NOW = datetime(2025, 11, 30, 3, tzinfo=UTC)
"""Long past, for commands that ask the clock of the machine."""
FACTS = {**fakes.FACTS, "engine": "vllm", "engine_version": "0.26.0", "node": "node1"}


def save(
    root: Path,
    days_ago: float,
    values: Mapping[str, float],
    *,
    session: str = "",
    arm: str = "new",
    case: str = "new",
    role: Role = "candidate",
    facts: Mapping[str, str] | None = None,
    failures: FailureGate | None = None,
    **fields: Any,
) -> Path:
    """One run that began ``days_ago``, of the case ``<case>/chat``; a session of its own where none is named."""
    began = NOW - timedelta(days=days_ago)
    cell = fakes.case(root, fakes.gate("output_throughput"), arm=arm, variant_of=None if case == arm else case)
    cell = replace(cell, suite=replace(cell.suite, failures=failures))
    folder = archive.new_folder(root, cell, role, began)
    run = saved_example.example(
        folder,
        **{
            "records": records(replace(request([100, 120]), index=0)),
            "case": cell.id,
            "arm": arm,
            "role": role,
            "started": began.isoformat(),
            "session": session or f"{began:%Y%m%dT%H%M%S}-{arm}",
            "environment": {**FACTS, **(facts or {})},
            "findings": (),
            **fields,
        },
    )
    archive.save(folder, run, values, cell, log=b"")
    return folder
