"""The file of rows: what one worker hands to the driver, written before anything is derived from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.http1 import Framing, HttpError
from pytest_llmperf.load.job import Job, JobRequest
from pytest_llmperf.load.masking import masked
from pytest_llmperf.load.raw_file import RawFile
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
        raw_kept: how many raw responses are in its file of them.
    """

    rows: tuple[Row, ...]
    lags_ns: tuple[int, ...]
    cpu_share: float
    raw_kept: int = 0


def write_rows(job: Job, exchanges: Sequence[Exchange], lags_ns: Sequence[int], cpu_share: float, key: str) -> None:
    """Read the exchanges and write their rows, by rename: the file is whole or absent. The exchanges are used up.

    Beside it go the raw responses of the first failed requests, and of all where the job says so. The API key is cut
    out of whatever the server echoed.
    """
    rows, kept = [], 0
    raw = RawFile(Path(job.raw), job.raw_limit, exact_output=job.exact_output) if job.raw else None
    for request, exchange in zip(job.requests, exchanges, strict=True):
        row = _read(request, exchange, exact_output=job.exact_output, key=key)
        rows.append(row)
        if row.outcome != Outcome.OK and exchange.raw and kept < _FAILED_KEPT:
            _keep_raw(Path(job.failed), row.index, exchange, key)
            kept += 1
        if raw is not None:
            clean = _masked(exchange, key) if key else exchange
            raw.keep(request, clean, masked=clean.raw != exchange.raw)
        exchange.forget()
    raw_kept = 0
    if raw is not None:
        raw.close()
        raw_kept = raw.kept
    whole = Path(job.rows)
    part = whole.with_suffix(".part")
    report = {"rows": rows, "lags_ns": list(lags_ns), "cpu_share": cpu_share, "raw_kept": raw_kept}
    part.write_bytes(orjson.dumps(report))
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
        raw_kept=fields["raw_kept"],
    )


def _read(request: JobRequest, exchange: Exchange, *, exact_output: bool, key: str) -> Row:
    """The row of an exchange. Only a reason quotes what the server said: it is made from masked bytes, then cut."""
    row = read_row(request, exchange, exact_output=exact_output)
    if key and row.reason and exchange.raw:
        row.reason = read_row(request, _masked(exchange, key), exact_output=exact_output).reason
    return row


def _masked(exchange: Exchange, key: str) -> Exchange:
    """The exchange as it would be had the server sent asterisks."""
    clean = replace(exchange, raw=bytearray(masked(exchange.raw, key)), framing=Framing())
    try:
        clean.framing.complete(clean.raw)
    except HttpError as error:
        clean.reason = str(error)
    return clean


def _keep_raw(folder: Path, index: int, exchange: Exchange, key: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"request-{index}.http").write_bytes(masked(exchange.raw[: 2 * _FAILED_BYTES], key)[:_FAILED_BYTES])
