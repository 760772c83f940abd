"""The client's self-test: how many streams this machine's load client carries validly, and how late it is then.

The client is driven as in any run (``load.drive``) and judged as in any run (``checks.validity``), against servers of
our own that stream at a known pace. What a run would call INVALID is INVALID here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_llmperf import load, metrics, workload
from pytest_llmperf.checks import validity
from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.load.capture import Capture
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.ceiling import Ceiling, Limit, Pace, Step
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.finding import Finding
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.records import Records
from pytest_llmperf.model.suite import Load, Workload
from pytest_llmperf.pipeline.loopback import Loopback

TOKENS_PER_S = 50
"""Of each stream; about what one user of a large model gets."""

TOKENS = 75
"""Of each answer: a second and a half, so that a step has 150 readings of the lag on each worker."""

MODEST = 64
"""Streams that any machine must carry: fewer than the smallest load of most published benchmarks."""

STREAMS = (16, MODEST, 256, 512, 768, 1024, 1536, 2048, 3072)
"""What one worker is asked to carry, until it cannot."""

SHARES = (1.0, 0.75, 0.5)
"""Of the sum of what each would carry alone: what all workers together are asked to carry, until they can."""

MOST_WORKERS = 8
MOST_STREAMS = 8192
"""More than any node sends: 400,000 tokens a second. Each stream takes a port of this machine, of some 28,000."""

SATURATED = 0.8
"""A server that uses less of a core and still is late was kept from running."""

TRIES = 2
"""Of one load on one worker: a hiccup of the machine is not its ceiling."""

BOUND_S = 18.0
"""Of the whole test; a step that might not end in time is left out."""

STEP_S = 3.0
"""A step's own time, and that of starting and ending its processes; what the first one is expected to take."""

MEANS = ("output_throughput", "mean_tpot_ms", "mean_itl_ms", "mean_e2el_ms")
TAILS = ("median_itl_ms", "p99_itl_ms")
GATES = tuple(Gate(metric=METRICS[name], margin=METRICS[name].margin) for name in (*MEANS, *TAILS))
"""Judged at their default margins. TTFT is left out: a loopback has none to speak of."""


def self_test(
    cores: int,
    show: Callable[[str], None],
    clock: Clock = CLOCK,
    run: Callable[[int, int, int], Step] | None = None,
) -> list[Ceiling]:
    """The ceiling of one worker, and that of all workers that a run would have here, where these are more.

    One half of the cores is given to the servers, so that the client is the limit.

    Args:
        cores: that may be used.
        show: takes one line before each step.
        clock: bounds the test by ``BOUND_S``.
        run: one step with so many workers, streams and servers.
    """
    watch = _Watch(show, clock, run or carry)
    workers = max(1, min(cores // 2, MOST_WORKERS))
    steps = tuple(watch.upwards(keep_s=len(SHARES) * STEP_S if workers > 1 else 0))
    alone = Ceiling(workers=1, steps=steps, bounded=bool(steps) and not steps[-1].limit)
    if workers == 1 or alone.best is None:
        return [alone]
    together = tuple(watch.downwards(workers, min(alone.best.streams * workers, MOST_STREAMS)))
    return [alone, Ceiling(workers=workers, steps=together, bounded=bool(together) and not together[0].limit)]


class _Watch:
    """Makes the steps, and leaves out those for which there is no time."""

    def __init__(self, show: Callable[[str], None], clock: Clock, run: Callable[[int, int, int], Step]) -> None:
        self._show = show
        self._clock = clock
        self._run = run
        self._end_ns = clock.monotonic_ns() + round(BOUND_S * 1e9)
        self._longest_s = STEP_S

    def upwards(self, keep_s: float) -> Iterator[Step]:
        """More and more streams on one worker, until a step is not valid twice; ``keep_s`` are left for others."""
        for streams in STREAMS:
            for _ in range(TRIES):
                if not self._time_left(keep_s):
                    return
                step = self._step(1, streams, 1)
                yield step
                if not step.limit:
                    break
            else:
                return

    def downwards(self, workers: int, most: int) -> Iterator[Step]:
        """Fewer and fewer streams on all workers, until a step is valid."""
        for share in SHARES:
            if not self._time_left(0):
                return
            step = self._step(workers, round(most * share), workers)
            yield step
            if not step.limit:
                return

    def _time_left(self, keep_s: float) -> bool:
        return self._clock.monotonic_ns() + round((self._longest_s + keep_s) * 1e9) < self._end_ns

    def _step(self, workers: int, streams: int, servers: int) -> Step:
        self._show(f"self-test: {streams} streams at {TOKENS_PER_S} tok/s on {workers} worker{'s' * (workers != 1)}")
        start_ns = self._clock.monotonic_ns()
        step = self._run(workers, streams, servers)
        self._longest_s = max(self._longest_s, (self._clock.monotonic_ns() - start_ns) / 1e9)
        return step


def carry(workers: int, streams: int, servers: int) -> Step:
    """Let so many workers carry so many streams from so many servers, each ``TOKENS`` long."""
    asked = Workload(name="loopback", kind="words", requests=streams, input_tokens=8, output_tokens=TOKENS)
    plan = workload.plan(asked, Load(kind="concurrency", value=streams), seed=0, model_id="loopback")
    with (
        tempfile.TemporaryDirectory(prefix="llmperf-") as folder,
        Loopback(tick_s=1 / TOKENS_PER_S, processes=servers) as loopback,
    ):
        capture = load.drive(
            plan,
            Endpoint(url=loopback.url, model="loopback"),
            Path(folder),
            stall_timeout_s=STEP_S,
            request_timeout_s=2 * STEP_S,
            alive=loopback.alive,
            workers=workers,
        )
        return step_of(workers, capture, loopback.stop())


def step_of(workers: int, capture: Capture, sent: Pace) -> Step:
    """What a load shows that was driven: the figures of a run, and a run's verdict on its client."""
    records, client = capture.records, capture.client
    values = metrics.compute(records, capture.window_ns, None)
    window_s = (capture.window_ns[1] - capture.window_ns[0]) / 1e9
    arrived = len(records.chunk_ns)
    invalid = _invalid(validity.client_findings(client, values, GATES))
    limit, why = judge(sent, invalid, _failed(records))
    return Step(
        workers=workers,
        streams=len(records),
        chunks_per_s=arrived / window_s if window_s > 0 else 0.0,
        cpu_us_per_chunk=client.cpu_share * workers * window_s * 1e6 / max(1, arrived),
        client=client,
        sent=sent,
        itl_ms=(values["median_itl_ms"], values["p99_itl_ms"]) if "p99_itl_ms" in values else None,
        invalid=invalid,
        tails=not limit and not invalid.keys() & set(TAILS),
        limit=limit,
        why=why,
    )


def judge(sent: Pace, invalid: Mapping[str, str], failed: str) -> tuple[Limit, str]:
    """What kept the means of a step from being valid, and in words; "" when nothing did.

    Servers that did not keep their pace explain a client that seems late, and streams that were not as fast as they
    were meant to be: they come first.
    """
    if failed:
        return "requests", failed
    if not sent.kept:
        ticks = f"{sent.missed} of {sent.ticks + sent.missed} ticks could not be kept"
        cause = "" if sent.cpu_share >= SATURATED else ": something else had the CPU"
        return "server", f"server-bound: {ticks}, at {sent.cpu_share:.0%} of a core{cause}"
    wrong = [why for name, why in invalid.items() if name in MEANS]
    return ("client", wrong[0]) if wrong else ("", "")


def _failed(records: Records) -> str:
    """How many requests failed and why the first of them did, "" when all were answered."""
    if records.ok.all():
        return ""
    reason = next((reason for reason, failed in zip(records.reason, records.failed, strict=True) if failed), "")
    return f"{int(records.failed.sum())} of {len(records)} requests failed: {reason}"


def _invalid(findings: Sequence[Finding]) -> dict[str, str]:
    """The metrics that may not be judged; of several reasons the last, which is the simplest (CPU before lag)."""
    return {
        name: f"{finding.check}: {finding.value}"
        for finding in findings
        if finding.invalidates
        for name in finding.metrics or ()
    }
