"""A saved run: what its folder says, with all that its metrics need beside the records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.records import Records
from pytest_llmperf.model.run import Run, RunFacts
from pytest_llmperf.model.slo import Slo


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFacts:
    """What ``run.json`` says of a run: all but its columns.

    Attributes:
        run: findings included; ``folder`` is where it was read from.
        values: its metrics as they were computed when it was saved, by name; also of names that we no longer know.
        totals: duration, requests and tokens as they were counted then, by vLLM's names.
        slo: the limits of goodput.
        failures: how many requests might fail; None where none might.
        gpus: how many served the model, 0 where that does not matter; None where the file does not say.
        workload: the digest of what was asked.
        asked: the definitions of workload and load.
        version: of the pytest-llmperf that saved it, "" where the file does not say.
    """

    run: RunFacts
    values: Mapping[str, float]
    totals: Mapping[str, float | int | None]
    slo: Slo | None
    failures: FailureGate | None
    gpus: int | None
    workload: str
    asked: Mapping[str, Any]
    version: str

    def with_records(self, records: Records) -> SavedRun:
        """The whole run."""
        return SavedRun(**{**_parts(self), "run": Run(**_parts(self.run), records=records)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRun(SavedFacts):
    """A run, as it was read back whole."""

    run: Run


def _parts(value: SavedFacts | RunFacts) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}
