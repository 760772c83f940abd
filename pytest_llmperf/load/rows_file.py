"""The file of rows: what one worker hands to the driver, written before anything is derived from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.job import Job
from pytest_llmperf.load.row import Row, read_row
from pytest_llmperf.model.outcome import Outcome

_FAILED_KEPT = 20
_FAILED_BYTES = 64 * 1024
"""Raw responses of failed requests that a worker keeps, and how much of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """One worker's rows and how it fared.

    Attributes:
        lags_ns: how late its event loop woke up, every 10 ms.
        cpu_share: CPU time over wall time of its window.
    """

    rows: tuple[Row, ...]
    lags_ns: tuple[int, ...]
    cpu_share: float


def write_rows(job: Job, exchanges: Sequence[Exchange], lags_ns: Sequence[int], cpu_share: float, key: str) -> None:
    """Read the exchanges and write their rows, by rename: the file is whole or absent.

    Beside it go the raw responses of the first failed requests. The API key is cut out of whatever the server echoed.
    """
    rows = [
        read_row(request, exchange, exact_output=job.exact_output)
        for request, exchange in zip(job.requests, exchanges, strict=True)
    ]
    if key:
        for row in rows:
            row.reason = row.reason.replace(key, "***")
    failed = [(row, exchange) for row, exchange in zip(rows, exchanges, strict=True) if row.outcome != Outcome.OK]
    for row, exchange in [pair for pair in failed if pair[1].raw][:_FAILED_KEPT]:
        _keep_raw(Path(job.failed), row.index, exchange, key)
    whole = Path(job.rows)
    part = whole.with_suffix(".part")
    part.write_bytes(orjson.dumps({"rows": rows, "lags_ns": list(lags_ns), "cpu_share": cpu_share}))
    part.replace(whole)


def read_rows(file: Path) -> WorkerReport | None:
    """The report that ``write_rows`` wrote, None when there is none."""
    if not file.exists():
        return None
    fields: dict[str, Any] = orjson.loads(file.read_bytes())
    return WorkerReport(
        rows=tuple(Row(**row) for row in fields["rows"]),
        lags_ns=tuple(fields["lags_ns"]),
        cpu_share=fields["cpu_share"],
    )


def _keep_raw(folder: Path, index: int, exchange: Exchange, key: str) -> None:
    raw = bytes(exchange.raw[:_FAILED_BYTES])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"request-{index}.http").write_bytes(raw.replace(key.encode(), b"***") if key else raw)
