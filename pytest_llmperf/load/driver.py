"""The driver: runs a plan against an endpoint and keeps what happened."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pytest_llmperf.clock import CLOCK
from pytest_llmperf.errors import UsageError
from pytest_llmperf.load import wire
from pytest_llmperf.load.capture import Capture, End, Progress
from pytest_llmperf.load.facts import client_facts
from pytest_llmperf.load.fleet import Fleet
from pytest_llmperf.load.job import Job
from pytest_llmperf.load.records_file import records_of, write_records
from pytest_llmperf.load.row import Row, unsent_row
from pytest_llmperf.load.rows_file import WorkerReport, read_rows
from pytest_llmperf.load.shares import split, worker_count
from pytest_llmperf.load.stall import silent_for_s
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.outcome import NEVER, Outcome
from pytest_llmperf.model.plan import Plan
from pytest_llmperf.model.records import Records

_OTHER_FILES = 32
"""Of a worker, beside its streams."""

_POLL_S = 0.1
_START_AHEAD_NS = 5_000_000
_LOST = "a load worker was killed before it could say what it had seen"
_DEATH_GRACE_S = 1.0
"""How long a process may take to be seen as dead after its sockets closed; waited only when requests failed."""
_FAILURE_GRACE_S = 1.0
"""How long a run goes on after its first failed request, which has decided it: the engine's death may show, and
requests that fail together are told together."""


def drive(  # noqa: PLR0913 (all but three have their names at the call)
    plan: Plan,
    endpoint: Endpoint,
    folder: Path,
    *,
    stall_timeout_s: float,
    request_timeout_s: float,
    alive: Callable[[], bool],
    progress: Callable[[Progress], None] | None = None,
    workers: int | None = None,
    keep_raw: bool = False,
    cores: Sequence[int] = (),
    window: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Capture:
    """Send every request of a plan and record what comes back; blocks until the end.

    Args:
        plan: what to send and when.
        endpoint: where to.
        folder: gets ``records.npz``, and ``failed/`` with the raw responses of the first failed requests.
        stall_timeout_s: without a byte on any stream for this long while something is in flight, the run is aborted.
        request_timeout_s: bound on each request, connecting included.
        alive: whether the engine's process lives; asked about ten times a second. False aborts the run.
        progress: called about five times a second.
        workers: how many processes; None for as many as the expected rate of chunks needs.
        keep_raw: whether ``folder`` also gets ``raw/`` with all responses, up to ``raw_file.RAW_LIMIT``.
        cores: those that are the workers' alone: one worker on each, in turn, and no more workers than that by
            themselves. () for any core.
        window: a context around the load alone: entered when all workers are ready, left when the load is over.

    Returns:
        What happened, whole or up to the abort: failed requests are rows of the records, never an exception. The first
        of them decides the run, so ``_FAILURE_GRACE_S`` after it the rest is abandoned.

    Raises:
        UsageError: the variable that should hold the API key is not set, or a worker may not open enough files.
        ClientError: a worker of ours crashed; ``records.npz`` has what the others saw.
    """
    if endpoint.api_key_env and not os.environ.get(endpoint.api_key_env):
        raise UsageError(f"the environment variable {endpoint.api_key_env}, which should hold the API key, is not set")
    folder.mkdir(parents=True, exist_ok=True)
    count = workers or worker_count(plan, len(cores) or len(os.sched_getaffinity(0)) - 1)
    jobs = split(
        plan, endpoint, folder, workers=count, request_timeout_s=request_timeout_s, keep_raw=keep_raw, cores=cores
    )
    _require_files(jobs)
    try:
        start_ns, end = _run(jobs, folder, _Watch(len(plan.requests), stall_timeout_s, alive, progress), window)
    finally:
        records, reports = _gather(jobs, folder)
    last_ns = max(start_ns, int(records.done_ns.max(initial=NEVER)))
    client = client_facts(reports, records, plan.load, tuple(job.core for job in jobs if job.core is not None))
    kept = sum(report.raw_kept for report in reports)
    return Capture(records=records, client=client, window_ns=(start_ns, last_ns), end=end, raw_kept=kept)


def _require_files(jobs: Sequence[Job]) -> None:
    """Every stream is a file; an open loop's are not known beforehand.

    Raises:
        UsageError: the hard limit of this process, to which a worker raises its own, is too low.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = max(job.concurrency or sum(request.at_ns == 0 for request in job.requests) for job in jobs) + _OTHER_FILES
    if most != resource.RLIM_INFINITY and needed > most:
        raise UsageError(
            f"{len(jobs)} load worker(s) need {needed} open files each, one for a stream, and may have {most}:"
            " raise the hard limit (ulimit -Hn), or ask for fewer streams"
        )


def _run(
    jobs: list[Job], folder: Path, watch: _Watch, window: Callable[[], AbstractContextManager[None]]
) -> tuple[int, End]:
    """The load itself: when it started and how it ended. However that is, the workers are told to write their rows."""
    stop = wire.Stop(Outcome.FAILED, "the run was interrupted")
    with Fleet(jobs, folder) as fleet:
        try:
            fleet.wait_until_ready()
            with window():
                start_ns = CLOCK.monotonic_ns() + _START_AHEAD_NS
                fleet.send(wire.Start(start_ns))
                end = watch.until_over(fleet, start_ns)
            stop = watch.stop(end)
        finally:
            fleet.stop(stop)
    return start_ns, end


class _Watch:
    """Decides when a run is over, and how it ended."""

    def __init__(
        self,
        total: int,
        stall_timeout_s: float,
        alive: Callable[[], bool],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self._total = total
        self._stall_timeout_s = stall_timeout_s
        self._alive = alive
        self._progress = progress
        self._failed_ns: int | None = None

    def until_over(self, fleet: Fleet, start_ns: int) -> End:
        """Bounded by the request timeout of each request, which the workers keep."""
        while True:
            fleet.listen(_POLL_S)
            self._report(fleet, start_ns)
            if fleet.finished:
                return "complete" if self._survived(fleet) else "died"
            if not self._alive():
                return "died"
            if silent_for_s(fleet.beats) >= self._stall_timeout_s:
                return "stalled"
            if self._failed_for_s(fleet) >= _FAILURE_GRACE_S:
                return "failed"

    def stop(self, end: End) -> wire.Stop:
        """What the workers are told of an end."""
        match end:
            case "stalled":
                return wire.Stop(Outcome.TIMED_OUT, f"stalled: no byte on any stream for {self._stall_timeout_s:g} s")
            case "died":
                return wire.Stop(Outcome.FAILED, "the engine's process ended")
            case "failed":
                return wire.Stop(Outcome.ABANDONED, "an earlier request failed")
            case "complete":
                return wire.Stop(Outcome.OK, "")

    def _failed_for_s(self, fleet: Fleet) -> float:
        """How long ago the first failure was heard of, as far as the transport can tell; 0 without one."""
        if not any(beat.failed for beat in fleet.beats):
            return 0.0
        now = CLOCK.monotonic_ns()
        self._failed_ns = self._failed_ns or now
        return (now - self._failed_ns) / 1e9

    def _survived(self, fleet: Fleet) -> bool:
        """Whether the engine still lives; when requests failed, its death may be about to show."""
        deadline = CLOCK.monotonic_ns() + round(_DEATH_GRACE_S * 1e9)
        broken = any(beat.failed for beat in fleet.beats)
        while broken and self._alive() and CLOCK.monotonic_ns() < deadline:
            CLOCK.sleep(_POLL_S)
        return self._alive()

    def _report(self, fleet: Fleet, start_ns: int) -> None:
        if self._progress is None:
            return
        beats = fleet.beats
        self._progress(
            Progress(
                total=self._total,
                done=sum(beat.done for beat in beats),
                failed=sum(beat.failed for beat in beats),
                in_flight=sum(beat.in_flight for beat in beats),
                chunks=sum(beat.chunks for beat in beats),
                elapsed_s=max(0, CLOCK.monotonic_ns() - start_ns) / 1e9,
            )
        )


def _gather(jobs: list[Job], folder: Path) -> tuple[Records, list[WorkerReport]]:
    """Merge the workers' rows into ``records.npz``, and only then delete them."""
    reports = {job.rows: read_rows(Path(job.rows)) for job in jobs}
    rows: list[Row] = []
    for job in jobs:
        report = reports[job.rows]
        rows += report.rows if report is not None else (unsent_row(request, _LOST) for request in job.requests)
    records = records_of(rows)
    write_records(records, folder / "records.npz")
    for job in jobs:
        Path(job.rows).unlink(missing_ok=True)
    return records, [report for report in reports.values() if report is not None]
