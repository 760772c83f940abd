"""A run: one repeat of a case's load against one running engine, with everything that is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pytest_llmperf.model.acceptance import Acceptance as Acceptance  # noqa: PLC0414 (part of what a run says)
from pytest_llmperf.model.finding import Finding
from pytest_llmperf.model.prefix_hits import PrefixHits
from pytest_llmperf.model.records import Records

Role = Literal["candidate", "reference", "warmup", "confirmation", "twin"]
"""``twin``: the same requests to two arms, to compare what they say; never measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFacts:
    """How the client fared, over all its workers; from these it is decided whether it could keep up.

    Attributes:
        workers: number of worker processes.
        lag_mean_ms: mean of how late a worker's event loop woke up.
        lag_p50_ms: its median.
        lag_p99_ms: its 99th percentile.
        lag_max_ms: its maximum.
        cpu_share: the busiest worker's CPU time over wall time.
        schedule_lag_p99_ms: 99th percentile of sent minus scheduled; None without a request rate.
        max_in_flight: the largest number of requests in flight at once.
        coalesced_share: of the chunks that follow another one, those that came with the same read; None without any.
            A server that sends several at once causes it, and so does a client that reads late.
        cores: the core that each worker was bound to; () where they were not.
    """

    workers: int
    lag_mean_ms: float
    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float
    cpu_share: float
    schedule_lag_p99_ms: float | None
    max_in_flight: int
    coalesced_share: float | None = None
    cores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """All that is known of one repeat but its columns.

    Attributes:
        id: unique, sorts by time; also the name of its folder.
        session: one start of one server; runs of one session share its luck.
        order: position among all measured runs of the case, for time trends.
        started: UTC, ISO 8601.
        window_ns: monotonic start (before the first send) and end (after the last stream).
        acceptance: None when the engine has no counters of speculation.
        prefix_hits: by the engine's counters; None when it has none.
        environment: facts by key, of engine, machine and client; ``checks.comparability`` knows which key matters.
        energy_j: of all GPUs of the case over the window; None where it is not known.
        folder: where it is saved.
    """

    id: str
    suite: str
    case: str
    arm: str
    role: Role
    session: str
    order: int
    started: str
    seed: int
    plan_digest: str
    window_ns: tuple[int, int]
    client: ClientFacts
    acceptance: Acceptance | None
    environment: Mapping[str, str]
    findings: tuple[Finding, ...] = ()
    prefix_hits: PrefixHits | None = None
    energy_j: float | None = None
    folder: Path | None = field(default=None, compare=False)

    @property
    def began(self) -> datetime:
        """``started`` as a time; UTC where it names no zone."""
        moment = datetime.fromisoformat(self.started)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(RunFacts):
    """One repeat, with what happened to each request."""

    records: Records
