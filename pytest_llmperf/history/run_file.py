"""``run.json``, read back: all of a run but its columns, checked."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, field_validator

from pytest_llmperf.errors import SavedRunError, shown
from pytest_llmperf.history.folder import RECORDS, RUN
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.acceptance import Acceptance
from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.finding import Finding
from pytest_llmperf.model.prefix_hits import PrefixHits
from pytest_llmperf.model.run import ClientFacts, Role, RunFacts
from pytest_llmperf.model.saved_run import SavedFacts
from pytest_llmperf.model.slo import Slo

FORMAT = 1
"""Of ``run.json``; raised when a reader of the format before would misread a file. Files of 0 do not say it, and lack
what goodput and throughput per GPU need."""


def read_facts(folder: Path) -> SavedFacts:
    """What ``pipeline.archive.save`` left in ``folder``, without the columns.

    Raises:
        SavedRunError: the file is missing, damaged, of a newer format, or somebody else's.
    """
    file = folder / RUN
    stored = _stored(file, _json(file))
    ours, more = stored.llmperf, stored.model_extra or {}
    names = [name for name in METRICS if name in more] if ours.metrics is None else ours.metrics
    try:
        values = {name: float(more[name]) for name in names}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise SavedRunError(f"{shown(file)}: damaged: a metric has no value ({error})") from None
    if endless := [name for name, value in values.items() if not math.isfinite(value)]:
        raise SavedRunError(f"{shown(file)}: damaged: {endless[0]} is {values[endless[0]]}")
    return SavedFacts(
        run=RunFacts(
            id=ours.id, suite=ours.suite, case=ours.case, arm=ours.arm, role=ours.role, session=ours.session,
            order=ours.order, started=stored.date, seed=ours.seed, plan_digest=ours.plan, window_ns=ours.window_ns,
            client=ours.client, acceptance=ours.acceptance, environment=ours.environment, findings=ours.findings,
            prefix_hits=ours.prefix_hits, energy_j=ours.energy_j, folder=folder,
        ),
        values=values,
        totals=stored.totals(),
        slo=ours.slo,
        failures=ours.failures,
        gpus=ours.gpus,
        workload=ours.workload,
        asked=ours.asked,
        version=ours.version,
    )  # fmt: skip


_Count = Annotated[int, Field(ge=0, lt=2**63)]


class _Ours(BaseModel):
    """What is under ``llmperf``; a key without a default is in the files of every format."""

    format: int = 0
    version: str = ""
    id: str
    suite: str
    case: str
    arm: str
    role: Role
    session: str
    order: int
    seed: int
    plan: str
    workload: str
    asked: dict[str, Any] = {}
    window_ns: tuple[int, int]
    slo: Slo | None = None
    failures: FailureGate | None = None
    gpus: int | None = None
    metrics: list[str] | None = None
    client: ClientFacts
    acceptance: Acceptance | None
    prefix_hits: PrefixHits | None = None
    energy_j: float | None = None
    environment: dict[str, str]
    findings: tuple[Finding, ...]


class _Stored(BaseModel):
    """``run.json``; the metrics are among what else is at its top."""

    model_config = ConfigDict(extra="allow")

    date: str
    num_prompts: _Count
    duration: FiniteFloat
    completed: _Count
    failed: _Count
    total_input_tokens: _Count | None
    total_output_tokens: _Count | None
    llmperf: _Ours

    @field_validator("date")
    @classmethod
    def _time(cls, value: str) -> str:
        datetime.fromisoformat(value)
        return value

    def totals(self) -> dict[str, float | int | None]:
        """Those of ``archive.totals``."""
        return {
            "num_prompts": self.num_prompts,
            "duration": self.duration,
            "completed": self.completed,
            "failed": self.failed,
            "total_input_tokens": self.total_input_tokens,
            "total_output_tokens": self.total_output_tokens,
        }


def _stored(file: Path, data: Any) -> _Stored:
    """The checked content of a ``run.json``; its format is looked at before anything else of it."""
    ours = data.get("llmperf") if isinstance(data, dict) else None
    if not isinstance(ours, dict):
        raise SavedRunError(f"{shown(file)}: has no part 'llmperf': another tool wrote it")
    written = ours.get("format", 0)
    if isinstance(written, int) and written > FORMAT:
        by = ours.get("version", "a newer version")
        raise SavedRunError(
            f"{shown(file)}: format {written}, written by pytest-llmperf {by}; this one reads up to {FORMAT}: update it"
        )
    try:
        return _Stored.model_validate(data)
    except ValidationError as error:
        first, *others = error.errors(include_url=False, include_input=False)
        place = ".".join(map(str, first["loc"]))
        more = f" (and {len(others)} more)" if others else ""
        raise SavedRunError(f"{shown(file)}: damaged: {place}: {first['msg'].lower()}{more}") from None


def _json(file: Path) -> Any:
    if file.exists() and not file.is_file():  # whoever reads a pipe waits for its writer
        raise SavedRunError(f"{shown(file)}: is no file")
    try:
        return json.loads(file.read_bytes())
    except FileNotFoundError:
        kept = f"; its stamps are in {RECORDS}" if (file.parent / RECORDS).is_file() else ""
        raise SavedRunError(f"{shown(file)}: is missing: the run still goes on, or was killed{kept}") from None
    except OSError as error:
        raise SavedRunError(f"{shown(file)}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise SavedRunError(f"{shown(file)}: damaged: no JSON: {error}") from None
