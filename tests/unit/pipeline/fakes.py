"""Servers and runs without processes: a case whose every value is scripted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from pytest_llmperf import baseline
from pytest_llmperf.clock import Clock, FakeClock
from pytest_llmperf.errors import EngineError
from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.row import Row
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.records import Outcome, Records
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.run import ClientFacts, Role, Run
from pytest_llmperf.model.suite import Arm, Hardware, Load, Model, Suite, Warmup, Workload
from pytest_llmperf.model.verdict import Verdict
from pytest_llmperf.pipeline.dealer import Dealer
from pytest_llmperf.pipeline.execute import Task, Trial
from pytest_llmperf.pipeline.measure import CaseMeasurement
from pytest_llmperf.pipeline.ongoing import Ongoing, settle
from pytest_llmperf.pipeline.servers import Server
from pytest_llmperf.pipeline.shelf import Shelf
from pytest_llmperf.workload import Material

FACTS = {
    "hardware": "box",
    "workload": "sha256:w",
    "weights": "real",
    "client": "llmperf",
    "client_placement": "shared",
    "acceptance": "natural",
}

Script = Callable[[Task, Server], Mapping[str, float]]


def gate(metric: str, margin: float = 0.05, **fields: Any) -> Gate:
    return Gate(metric=METRICS[metric], margin=margin, **fields)


def case(tmp_path: Path, *gates: Gate, arm: str = "new", variant_of: str | None = None) -> Case:
    model = Model(id="m")
    arms = {
        name: Arm(name=name, engine="external", model=model, options={"url": f"http://127.0.0.1/{name}"})
        for name in ("new", "old")
    }
    chosen = replace(arms["new"], name=arm, variant_of=variant_of)
    workload = Workload(name="chat", kind="words", requests=4, input_tokens=8, output_tokens=8)
    suite = Suite(
        name="suite", why="", file=tmp_path / "x.llmperf.yaml", arms=arms, workloads={"chat": workload},
        loads={"chat": (Load(kind="burst"),)}, gates=gates, hardware=Hardware(), warmup=Warmup(requests=2),
        stall_timeout_s=5, request_timeout_s=5,
    )  # fmt: skip
    return Case(suite=suite, arm=chosen, workload=workload, load=Load(kind="burst"), gates=gates)


@dataclass
class FakeServers:
    """Counts starts; every start is a session of its own."""

    restartable: bool = True
    starts: int = 0
    running: dict[tuple[str, str], Server] = field(default_factory=dict)

    def get(self, arm: Arm, instance: str, *, generation_timeout_s: float) -> Server:
        place = (arm.name, instance)
        if place not in self.running:
            self.starts += 1
            self.running[place] = cast("Server", SimpleNamespace(arm=arm, session=f"{instance}-{self.starts}"))
        return self.running[place]

    def restart(self, arm: Arm, instance: str, *, generation_timeout_s: float) -> Server:
        self.running.pop((arm.name, instance), None)
        return self.get(arm, instance, generation_timeout_s=generation_timeout_s)

    def alone(self, arm: Arm, instance: str, *, generation_timeout_s: float) -> Server:
        self.running.clear()
        return self.get(arm, instance, generation_timeout_s=generation_timeout_s)

    def can_restart(self, arm: Arm) -> bool:
        return self.restartable


INVALID = Finding(check="client_lag", status=Status.FAIL, policy="require", value="late", metrics=None)


def no_records() -> Records:
    none, start = np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    return Records(
        scheduled_ns=none, sent_ns=none, first_token_ns=none, last_token_ns=none, done_ns=none, input_tokens=none,
        planned_input_tokens=none, output_tokens=none, cached_tokens=none, asked_tokens=none, status=none,
        outcome=none, reason=(), text_sha256=(), chunk_ns=none, chunk_start=start, token_source=none, chunk_source=none,
        chunk_tokens=np.empty(0, dtype=np.int16),
    )  # fmt: skip


def answered(tokens: int) -> Row:
    return Row(index=0, planned_input_tokens=8, asked_tokens=8, outcome=Outcome.OK, output_tokens=tokens)


def some_failed(failed: int, requests: int) -> Records:
    bad = [
        Row(index=i, planned_input_tokens=8, asked_tokens=8, outcome=Outcome.FAILED, reason="status 500")
        for i in range(failed)
    ]
    good = [replace(answered(8), index=i) for i in range(failed, requests)]
    return records_of([*bad, *good])


@dataclass
class Bench:
    """One case with scripted values.

    ``script`` gives the values of a run; a value under the key ``invalid`` makes all metrics of the run invalid, one
    under ``answered`` is the output tokens of its only request, ``failed`` of ``requests`` are counts.
    """

    tmp_path: Path
    case: Case
    script: Script
    servers: FakeServers = field(default_factory=FakeServers)
    accept: baseline.Mode = "none"
    recorded: Sequence[Gate] = ()
    tasks: list[Task] = field(default_factory=list)
    clock: Clock = field(default_factory=FakeClock)
    seeds: int = 0
    discarded: list[EngineError] = field(default_factory=list)
    time_left_s: Callable[[], float] = lambda: math.inf

    def __post_init__(self) -> None:
        store = baseline.Store(self.tmp_path / "baselines")
        self.shelf = Shelf(
            store=store, hardware="box", accept=self.accept, why="a test", save=self.tmp_path, family=1
        )  # fmt: skip
        self.case = self.shelf.calibrated(self.case)
        self.work = CaseMeasurement(
            case=self.case,
            subject=self.case.arm,
            servers=self.servers,
            folder=self.tmp_path,
            clock=self.clock,
            show=lambda _: None,
            environment=lambda server: {**FACTS, "engine": server.arm.name},
            next_seed=self._next_seed,
            material=Material(),
            dealer=Dealer(seed=0),
            recorded=tuple(self.recorded),
            time_left_s=self.time_left_s,
            run=self._run,
        )

    def _next_seed(self, role: Role) -> int:
        self.seeds += 1
        return self.seeds

    def _run(self, task: Task, server: Server, clock: Clock, show: Callable[[str], None]) -> Trial:
        values = dict(self.script(task, server))
        findings = (INVALID,) if values.pop("invalid", 0) else ()
        records = records_of([answered(int(values.pop("answered")))]) if "answered" in values else no_records()
        if "requests" in values:
            records = some_failed(int(values.pop("failed")), int(values.pop("requests")))
        self.tasks.append(task)
        run = Run(
            id=task.folder.name, suite="suite", case=task.case.id, arm=server.arm.name, role=task.role,
            session=server.session, order=task.order, started="", seed=task.seed, plan_digest="", window_ns=(0, 1),
            records=records, client=ClientFacts(
                workers=1, lag_mean_ms=0, lag_p50_ms=0, lag_p99_ms=0, lag_max_ms=0, cpu_share=0,
                schedule_lag_p99_ms=None, max_in_flight=1,
            ), acceptance=None, environment=task.environment, findings=findings, folder=task.folder,
        )  # fmt: skip
        return Trial(run, values)

    def begin(self) -> Ongoing:
        """The case, measured and judged, its reds not confirmed yet."""
        ongoing = Ongoing(
            prepared=CaseResult(suite="suite", case=self.case.id, nodeid="n", arm="new", hardware="box"),
            work=self.work,
            shelf=self.shelf,
            discard=self.discarded.append,
        )
        ongoing.measure()
        return ongoing

    def judge(self) -> CaseResult:
        return settle([self.begin()])[0]

    def verdicts(self) -> dict[str, Verdict]:
        return {verdict.metric: verdict for verdict in self.judge().verdicts}

    def roles(self) -> list[str]:
        """Roles of the runs that were made, without warm-ups, in order."""
        return [task.role for task in self.tasks if task.role != "warmup"]
