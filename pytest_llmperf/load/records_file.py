"""Records on disk: the columns of a run as one ``.npz`` file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import numpy as np

from pytest_llmperf.load.row import Row
from pytest_llmperf.model.records import Records

_TEXTS = ("reason", "text_sha256")


def records_of(rows: Iterable[Row]) -> Records:
    """The rows as columns, in the order of the plan."""
    ordered = sorted(rows, key=lambda row: row.index)
    lengths = [len(row.chunk_ns) for row in ordered]
    chunks = [stamp for row in ordered for stamp in row.chunk_ns]
    columns = {
        name: np.array([getattr(row, name) for row in ordered], dtype=np.int64)
        for name in (field.name for field in fields(Records))
        if name not in (*_TEXTS, "chunk_ns", "chunk_start")
    }
    return Records(
        **columns,
        reason=tuple(row.reason for row in ordered),
        text_sha256=tuple(row.text_sha256 for row in ordered),
        chunk_ns=np.array(chunks, dtype=np.int64),
        chunk_start=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
    )


def write_records(records: Records, file: Path) -> None:
    """By rename: the file is whole or absent."""
    columns = {field.name: np.asarray(getattr(records, field.name)) for field in fields(records)}
    part = file.with_suffix(".part")
    with part.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **columns)
    part.replace(file)


def read_records(path: Path) -> Records:
    """The records that a drive saved (``records.npz`` of its folder).

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it is no file of records.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            columns = {field.name: stored[field.name] for field in fields(Records)}
    except KeyError as error:
        raise ValueError(f"{path}: no column {error}: this is no file of records") from None
    reason, text_sha256 = (tuple(str(value) for value in columns.pop(name)) for name in _TEXTS)
    return Records(**columns, reason=reason, text_sha256=text_sha256)
