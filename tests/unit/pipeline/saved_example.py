"""A saved run as a session leaves it, made without one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_llmperf.load.records_file import write_records
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.records import Outcome, Records
from pytest_llmperf.model.run import Acceptance, ClientFacts, Run
from pytest_llmperf.model.slo import Slo
from pytest_llmperf.model.suite import Hardware
from pytest_llmperf.pipeline import archive
from pytest_llmperf.pipeline.review import recompute
from pytest_llmperf.pipeline.saved import read_run
from tests.unit.metrics.examples import MS, WINDOW, records, request
from tests.unit.pipeline import fakes

SLO = Slo(ttft_s=0.11)
CLIENT = ClientFacts(
    workers=2, lag_mean_ms=0.125, lag_p50_ms=0.0625, lag_p99_ms=0.75, lag_max_ms=2.5, cpu_share=0.25,
    schedule_lag_p99_ms=0.5, max_in_flight=3,
)  # fmt: skip
FINDINGS = (
    Finding(check="client_lag", status=Status.PASS, policy="require", value="p99 0.75 ms", metrics=frozenset()),
    Finding(check="input_length", status=Status.FAIL, policy="warn", value="client 24, server 30 prompt tokens"),
)


def columns() -> Records:
    """Four requests in a window of two seconds, of which one failed and one timed out."""
    failed = request(
        [], sent_ms=700, scheduled_ms=700, outcome=Outcome.FAILED, reason="HTTP 500: out of memory", status=500
    )
    silent = request(
        [900], sent_ms=800, scheduled_ms=800, outcome=Outcome.TIMED_OUT, reason="no end of the answer within 1 s"
    )
    return records(
        replace(request([100, 120, 140], each=[1, 2, 1], scheduled_ms=0, text_sha256="ab"), index=0),
        replace(request([600, 625], sent_ms=500, each=[1, 3], scheduled_ms=490), index=1),
        replace(failed, index=2, done_ns=710 * MS),
        replace(silent, index=3),
    )


def example(folder: Path, **fields: Any) -> Run:
    """A run of ``columns``; ``fields`` change it."""
    usual: dict[str, Any] = {
        "id": folder.name, "suite": "suite", "case": "new/chat", "arm": "new", "role": "candidate",
        "session": "20261130T100000-new-000001", "order": 2, "started": "2026-11-30T10:00:05.000+00:00", "seed": 7,
        "plan_digest": "sha256:p", "window_ns": WINDOW, "records": columns(), "client": CLIENT,
        "acceptance": Acceptance(steps=4, accepted=6, drafted=12, per_position=(3, 2, 1)),
        "environment": {"engine": "external", "model": "m"}, "findings": FINDINGS, "folder": folder,
    }  # fmt: skip
    return Run(**{**usual, **fields})


def case(folder: Path, slo: Slo | None = SLO, gpus: int = 2) -> Case:
    plain = fakes.case(folder, fakes.gate("output_throughput"))
    return replace(plain, suite=replace(plain.suite, slo=slo, hardware=Hardware(gpu="X", count=gpus)))


def saved(root: Path, name: str = "20261130T100005.000-new-chat-candidate-0000aa", **fields: Any) -> Path:
    """The folder of one run below ``root``, as it is after the run was saved."""
    folder = root / "runs" / name
    folder.mkdir(parents=True)
    run, of = example(folder, **fields), case(root)
    write_records(run.records, folder / "records.npz")
    archive.save(folder, run, {}, of, log=b"")
    archive.save(folder, run, recompute(read_run(folder)), of, log=b"ready\n")
    return folder
