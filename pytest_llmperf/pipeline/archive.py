"""Saved runs: one folder per run, written before anything is judged; ``pipeline.saved`` reads them back.

``run.json`` uses the key names of ``vllm bench serve --save-result`` where the meaning is the same, so that scripts
which read those files read ours; what vLLM has no word for is under ``llmperf``. ``records.npz`` holds the raw stamps
(written by the client, as ``failed`` and ``raw``), ``engine.log`` what the engine logged during the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_llmperf import __version__, history
from pytest_llmperf.errors import SavedRunError
from pytest_llmperf.model.case import Case, workload_digest
from pytest_llmperf.model.records import Int64, Outcome, Records, TokenSource
from pytest_llmperf.model.run import Role, Run
from pytest_llmperf.model.suite import Load


def new_folder(root: Path, case: Case, role: Role, now: datetime) -> Path:
    """A folder for one run, made here; ``history.candidates`` finds it by its name."""
    return history.new_folder(root, case.id, role, now)


def save(folder: Path, run: Run, values: Mapping[str, float], case: Case, log: bytes) -> None:
    """Write ``run.json`` and the run's part of the engine's log; ``run.json`` appears whole or not at all."""
    if log:
        (folder / "engine.log").write_bytes(log)
    draft = folder / "run.json.tmp"
    draft.write_text(json.dumps(_as_json(run, values, case), indent=1), encoding="utf-8")
    draft.replace(folder / "run.json")


def _as_json(run: Run, values: Mapping[str, float], case: Case) -> dict[str, Any]:
    load = case.load
    return {
        "date": run.started,
        "backend": "openai-chat" if case.workload.api == "chat" else "openai",
        "model_id": run.environment.get("model", ""),
        "request_rate": load.value if load.kind == "request_rate" else "inf",
        "burstiness": "inf" if load.burstiness == "constant" else load.burstiness or 1.0,
        "max_concurrency": load.value if load.kind == "concurrency" else None,
        **_ramp_up(load),
        **totals(run),
        **values,
        "llmperf": {
            "format": history.FORMAT,
            "version": __version__,
            "id": run.id,
            "suite": run.suite,
            "case": run.case,
            "arm": run.arm,
            "role": run.role,
            "session": run.session,
            "order": run.order,
            "seed": run.seed,
            "plan": run.plan_digest,
            "workload": workload_digest(case.workload, case.load),
            "asked": {"workload": asdict(case.workload), "load": asdict(case.load)},
            "window_ns": list(run.window_ns),
            "slo": None if case.suite.slo is None else asdict(case.suite.slo),
            "failures": None if case.suite.failures is None else asdict(case.suite.failures),
            "gpus": case.suite.hardware.count,
            "metrics": list(values),
            "client": asdict(run.client),
            "outcomes": {outcome.name.lower(): int((run.records.outcome == outcome).sum()) for outcome in Outcome},
            "token_source": token_sources(run.records),
            "acceptance": None if run.acceptance is None else asdict(run.acceptance),
            "prefix_hits": None if run.prefix_hits is None else asdict(run.prefix_hits),
            "environment": dict(run.environment),
            "findings": [finding.to_dict() for finding in run.findings],
        },
    }


def totals(run: Run) -> dict[str, float | int | None]:
    """What ``run.json`` says beside the metrics, by vLLM's names, and what follows from the columns like them."""
    records, ok = run.records, run.records.ok
    return {
        "num_prompts": len(records),
        "duration": (run.window_ns[1] - run.window_ns[0]) / 1e9,
        "completed": int(ok.sum()),
        "failed": int((~ok).sum()),
        "total_input_tokens": _known_sum(records.input_tokens[ok]),
        "total_output_tokens": records.total_output_tokens,
    }


def token_sources(records: Records) -> dict[str, dict[str, int]]:
    """How many successful requests have their tokens, and the tokens of their chunks, from where."""
    return {
        "output": _sources(records.token_source[records.ok]),
        "chunks": _sources(records.chunk_source[records.ok]),
    }


def _ramp_up(load: Load) -> dict[str, Any]:
    if load.ramp is None:
        return {}
    return {
        "ramp_up_strategy": load.ramp.shape,
        "ramp_up_start_rps": load.ramp.start,
        "ramp_up_end_rps": load.ramp.end,
    }


def _known_sum(column: Any) -> int | None:
    """The sum of a count column; None, not a wrong number, when one of the counts is unknown."""
    return int(column.sum()) if (column >= 0).all() else None


def _sources(column: Int64) -> dict[str, int]:
    return {source.name.lower(): count for source in TokenSource if (count := int((column == source).sum()))}


EARLIER_RUNS = 5
"""How many of the newest saved runs tell how long a run takes."""


def earlier_run_seconds(root: Path, case: Case) -> float | None:
    """Mean duration of the newest saved candidate runs of a case; None when there are none."""
    durations = []
    for folder in islice(history.candidates(root, case.id), EARLIER_RUNS):
        try:
            saved = history.read_facts(folder)
        except SavedRunError:
            continue  # a damaged run only makes the forecast poorer
        if (saved.run.suite, saved.run.case) == (case.suite.name, case.id):
            durations.append(float(saved.totals["duration"] or 0))
    return sum(durations) / len(durations) if durations else None
