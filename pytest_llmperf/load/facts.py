"""Client facts: how the client fared, from its workers' own measurements and the records. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_llmperf.load.rows_file import WorkerReport
from pytest_llmperf.metrics.concurrency import max_in_flight
from pytest_llmperf.metrics.samples import itl_ms
from pytest_llmperf.model.records import NEVER, Records
from pytest_llmperf.model.run import ClientFacts
from pytest_llmperf.model.suite import Load


def client_facts(
    reports: Sequence[WorkerReport], records: Records, load: Load, cores: tuple[int, ...] = ()
) -> ClientFacts:
    """Lag over the event loops of all workers together, CPU of the busiest one, and what was truly in flight.

    Only an open loop has a schedule to be late for: a closed loop has none, and a burst is as fast as it can be.
    """
    lags_ms = np.array([lag for report in reports for lag in report.lags_ns] or [0], dtype=np.float64) / 1e6
    return ClientFacts(
        workers=len(reports),
        lag_mean_ms=float(lags_ms.mean()),
        lag_p50_ms=float(np.percentile(lags_ms, 50)),
        lag_p99_ms=float(np.percentile(lags_ms, 99)),
        lag_max_ms=float(lags_ms.max()),
        cpu_share=max((report.cpu_share for report in reports), default=0.0),
        schedule_lag_p99_ms=schedule_lag_p99_ms(records) if load.scheduled else None,
        max_in_flight=max_in_flight(records),
        coalesced_share=coalesced_share(records),
        cores=cores,
    )


def coalesced_share(records: Records) -> float | None:
    """Chunks that came with the read of the chunk before / chunks with one before; over successful requests.

    Every chunk has the stamp of the read that brought its end, and no two reads of a stream have the same one.
    """
    gaps = itl_ms(records)
    return float(np.count_nonzero(gaps == 0) / len(gaps)) if len(gaps) else None


def schedule_lag_p99_ms(records: Records) -> float | None:
    """99th percentile of sent - scheduled over the requests that were sent; None when none was."""
    told = (records.scheduled_ns != NEVER) & (records.sent_ns != NEVER)
    if not told.any():
        return None
    return float(np.percentile((records.sent_ns - records.scheduled_ns)[told], 99)) / 1e6
