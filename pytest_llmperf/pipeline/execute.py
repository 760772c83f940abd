"""One run: plan, scrape, drive, scrape, save; then, and only then, decide whether its data are sane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_llmperf import load, metrics, workload
from pytest_llmperf.checks import kept, lengths, queueing, validity
from pytest_llmperf.checks.delivered import delivered_load
from pytest_llmperf.clock import Clock
from pytest_llmperf.engines.base import engine_of
from pytest_llmperf.engines.queueing import queued_s
from pytest_llmperf.errors import DeathError, EngineError, SanityError, StallError
from pytest_llmperf.load.capture import End, Progress
from pytest_llmperf.load.raw_file import RAW_LIMIT
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.counters import Counters
from pytest_llmperf.model.finding import Finding, forbidden
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.prefix_hits import PrefixHits
from pytest_llmperf.model.records import Records
from pytest_llmperf.model.run import Acceptance, Role, Run
from pytest_llmperf.model.suite import Arm
from pytest_llmperf.pipeline import archive
from pytest_llmperf.pipeline.counting import Counting
from pytest_llmperf.pipeline.servers import SCRAPE_TIMEOUT_S, Server
from pytest_llmperf.pipeline.watching import Watching
from pytest_llmperf.workload import Deal, Material


@dataclass(frozen=True, slots=True)
class Trial:
    """A run and what it measured: one value per metric.

    Attributes:
        temperatures_c: by uuid, how hot its GPUs were before it.
    """

    run: Run
    values: Mapping[str, float]
    temperatures_c: Mapping[str, int] = field(default_factory=dict)

    @property
    def invalid(self) -> dict[str, str]:
        """The metrics that this run's findings forbid to judge, each with the finding that does."""
        return forbidden(self.run.findings, self.values, self.run.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What to run: the place of one run in its case.

    Attributes:
        gates: those that its validity is checked for.
        seed: of this run alone.
        material: what the case's plans need from files.
        place: of this run among those that its server has seen.
    """

    case: Case
    gates: tuple[Gate, ...]
    role: Role
    order: int
    seed: int
    folder: Path
    environment: Mapping[str, str]
    material: Material
    place: Deal


def execute(task: Task, server: Server, clock: Clock, show: Callable[[str], None]) -> Trial:
    """Load ``server`` once with the case's workload and load.

    The run is saved before its data are looked at; a failure leaves it saved too.

    Raises:
        DeathError: the engine's process ended.
        StallError: no byte on any stream for the suite's stall timeout.
        SanityError: requests failed or answers are wrong.
    """
    case = task.case
    endpoint = server.endpoint
    plan = workload.plan(
        case.workload,
        case.load,
        seed=task.seed,
        model_id=endpoint.model,
        material=task.material,
        place=task.place,
        fields=endpoint.fields,
    )
    started = clock.utc_now()
    log_start = server.log_size()
    counting = Counting(server)
    with Watching(case, task.role, server, task.folder, clock) as watching:
        capture = load.drive(
            plan,
            endpoint,
            task.folder,
            stall_timeout_s=case.suite.stall_timeout_s,
            request_timeout_s=case.suite.request_timeout_s,
            alive=server.alive,
            progress=lambda progress: show(_line(task, server, progress)),
            keep_raw=case.suite.keep_raw == "all",
            cores=server.client_cores,
            window=watching.window,
        )
    if capture.end == "complete":
        counting.finish()
    told = watching.told(capture.window_ns)
    acceptance, restarted = _acceptance(server.arm, counting.before, counting.after)
    run = Run(
        id=task.folder.name,
        suite=case.suite.name,
        case=case.id,
        arm=server.arm.name,
        role=task.role,
        session=server.session,
        order=task.order,
        started=started.isoformat(timespec="milliseconds"),
        seed=plan.seed,
        plan_digest=plan.digest,
        window_ns=capture.window_ns,
        records=capture.records,
        client=capture.client,
        acceptance=acceptance,
        prefix_hits=_prefix_hits(server.arm, counting.before, counting.after),
        environment={
            **task.environment,
            **told.environment,
            "acceptance": _kind(acceptance),
            "request_fields": str(endpoint.fields),
        },
        energy_j=told.energy_j,
        folder=task.folder,
    )
    values = metrics.compute(
        run.records,
        run.window_ns,
        acceptance,
        slo=case.suite.slo,
        gpus=case.suite.hardware.count,
        energy_j=run.energy_j,
    )
    findings = (
        *_findings(run, values, task, turns=plan.turns, silent=counting.silent),
        *queueing.queueing(run.records, queued_s(counting.before, counting.after)),
        *_kept(case, capture),
        *told.findings,
    )
    run = replace(run, findings=findings)
    archive.save(task.folder, run, values, case, log=server.log_since(log_start))
    if restarted is not None:
        raise restarted
    _require_sane(run, capture.end, server, some_may_fail=case.suite.failures is not None)
    return Trial(run, values, told.temperatures_c)


def reasons(runs: Sequence[Records], most: int = 5) -> list[str]:
    """Why requests were not ok, the most frequent reasons first, each with its count."""
    found = Counter(records.reason[i] for records in runs for i in range(len(records)) if records.failed[i])
    return [f"{count} x {reason}" for reason, count in found.most_common(most)]


def _findings(run: Run, values: Mapping[str, float], task: Task, *, turns: int, silent: bool) -> tuple[Finding, ...]:
    """What the run's own data say of its validity."""
    most = run.client.max_in_flight
    expected_hits = task.case.workload.expect_prefix_hits or validity.PREFIX_HITS
    return (
        *validity.client_findings(run.client, values, task.gates),
        delivered_load(run.records, task.case.load, run.window_ns, task.gates, max_in_flight=most, turns=turns),
        validity.prefix_findings(run.records, expected_hits, counted=run.prefix_hits),
        lengths.input_length(run.records),
        *validity.acceptance_findings(run.acceptance, run.records),
        *([validity.silent_counters(SCRAPE_TIMEOUT_S)] if silent else []),
    )


def _acceptance(
    arm: Arm, before: Counters | None, after: Counters | None
) -> tuple[Acceptance | None, DeathError | None]:
    """Speculation over the run, or the restart of the server that its counters show; the run is saved either way."""
    if before is None or after is None:
        return None, None
    try:
        return engine_of(arm).acceptance(arm, before, after), None
    except DeathError as error:
        return None, error


def _kept(case: Case, capture: load.Capture) -> tuple[Finding, ...]:
    """Whether all raw responses were kept; nothing where the suite does not ask for them."""
    if case.suite.keep_raw != "all":
        return ()
    return (kept.raw_responses(capture.raw_kept, len(capture.records), RAW_LIMIT),)


def _prefix_hits(arm: Arm, before: Counters | None, after: Counters | None) -> PrefixHits | None:
    return None if before is None or after is None else engine_of(arm).prefix_hits(arm, before, after)


def _line(task: Task, server: Server, now: Progress) -> str:
    return (
        f"{task.case.id}  {task.role} {task.order + 1} on {server.arm.name}: {now.done} of {now.total} requests,"
        f" {now.in_flight} in flight, {now.elapsed_s:.0f} s"
    )


def _kind(acceptance: Acceptance | None) -> str:
    """Natural and synthetic acceptance are never compared with each other; see ``checks.comparability``."""
    if acceptance is None or acceptance.drafted == 0:
        return "none"
    return "synthetic" if acceptance.synthetic else "natural"


def _require_sane(run: Run, end: End, server: Server, *, some_may_fail: bool) -> None:
    ok = run.records.ok
    if end == "complete" and (ok.all() or (some_may_fail and ok.any())):
        return
    evidence = server.tail()
    kept = f"{int(run.records.ok.sum())} of {len(run.records)} requests had succeeded; records kept in {run.folder}"
    if end == "died":
        raise server.death(f"during {run.role} run {run.order + 1}; {kept}")
    if end == "stalled":
        raise StallError(
            f"no byte on any stream for the stall timeout during {run.role} run {run.order + 1}; {kept}",
            cause="stall",
            evidence=evidence,
            log=server.log,
        )
    raise _failed_requests(run.records, kept, evidence, server)


def _failed_requests(records: Records, kept: str, evidence: str, server: Server) -> EngineError:
    bad = [i for i in range(len(records)) if records.failed[i]]
    lines = reasons([records])
    return SanityError(
        f"{len(bad)} of {len(records)} requests failed: {lines[0]}; {kept}",
        cause="network" if all(records.status[i] < 0 for i in bad) else "unknown",
        evidence="\n".join([*lines[1:], *([evidence] if evidence else [])]),
        log=server.log,
    )
