"""Records on disk: the columns of a run as one ``.npz`` file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
import orjson

from pytest_llmperf.load.row import Row
from pytest_llmperf.model.records import NEVER, Records, TokenSource

_TEXTS = ("reason", "text_sha256")
_OF_CHUNKS = ("chunk_ns", "chunk_tokens", "chunk_start")


def records_of(rows: Iterable[Row]) -> Records:
    """The rows as columns, in the order of the plan."""
    ordered = sorted(rows, key=lambda row: row.index)
    lengths = [len(row.chunk_ns) for row in ordered]
    chunks = sum(lengths)
    tokens = chain.from_iterable(row.chunk_tokens or repeat(NEVER, len(row.chunk_ns)) for row in ordered)
    columns = {
        name: np.array([getattr(row, name) for row in ordered], dtype=np.int64)
        for name in (field.name for field in fields(Records))
        if name not in (*_TEXTS, *_OF_CHUNKS)
    }
    return Records(
        **columns,
        reason=tuple(row.reason for row in ordered),
        text_sha256=tuple(row.text_sha256 for row in ordered),
        chunk_ns=np.fromiter(chain.from_iterable(row.chunk_ns for row in ordered), dtype=np.int64, count=chunks),
        chunk_tokens=np.fromiter(tokens, dtype=np.int16, count=chunks),
        chunk_start=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64),
    )


def write_records(records: Records, file: Path) -> None:
    """By rename: the file is whole or absent."""
    columns = {
        field.name: np.asarray(getattr(records, field.name)) for field in fields(records) if field.name not in _TEXTS
    }
    columns |= {name: _packed(getattr(records, name)) for name in _TEXTS}
    part = file.with_suffix(".part")
    with part.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **columns)
    part.replace(file)


def read_records(path: Path) -> Records:
    """The records that a drive saved (``records.npz`` of its folder).

    A file without tokens of chunks, from an older version, has them unknown; tokens of requests were from usage then.

    Raises:
        OSError: there is no such file, or it cannot be read.
        ValueError: it is no file of records.
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            columns = _columns(stored)
            columns = {**_unknown(columns), **columns}
            columns = {field.name: columns[field.name] for field in fields(Records)}
        reason, text_sha256 = (_unpacked(columns.pop(name)) for name in _TEXTS)
        return Records(**columns, reason=reason, text_sha256=text_sha256)
    except KeyError as error:
        raise ValueError(f"{path}: no column {error}: this is no file of records") from None
    except (ValueError, EOFError, BadZipFile) as error:  # what a file that was cut, or is another one, comes to
        raise ValueError(f"{path}: damaged, or no file of records: {error}") from None


def _columns(stored: Any) -> dict[str, npt.NDArray[Any]]:
    """The columns of an opened file; raises ValueError for what cannot be columns of records."""
    if not isinstance(stored, np.lib.npyio.NpzFile):
        raise ValueError("a single array")  # noqa: TRY004 (the file is wrong, not the call)
    columns = dict(stored)
    for name in columns.keys() & {field.name for field in fields(Records)}:
        column = columns[name]
        if column.ndim != 1 or not (column.dtype.kind in "iu" or (name in _TEXTS and column.dtype.kind == "U")):
            raise ValueError(f"column {name} is {column.dtype} of {column.ndim} dimensions")
    return columns


def _packed(texts: tuple[str, ...]) -> npt.NDArray[np.uint8]:
    """As JSON: in a column of texts each one would take as much as the longest."""
    return np.frombuffer(orjson.dumps(texts), dtype=np.uint8)


def _unpacked(stored: npt.NDArray[Any]) -> tuple[str, ...]:
    """The texts; an older file has a column of them."""
    texts = orjson.loads(stored.tobytes()) if stored.dtype == np.uint8 else stored.tolist()
    if not isinstance(texts, list):
        raise ValueError("texts that are no list")  # noqa: TRY004
    return tuple(str(text) for text in texts)


def _unknown(stored: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The columns that older files do not have."""
    counted = stored["output_tokens"] != NEVER
    return {
        "token_source": np.where(counted, TokenSource.USAGE, TokenSource.NONE).astype(np.int64),
        "chunk_source": np.full(len(counted), TokenSource.NONE, dtype=np.int64),
        "chunk_tokens": np.full(len(stored["chunk_ns"]), NEVER, dtype=np.int16),
    }
