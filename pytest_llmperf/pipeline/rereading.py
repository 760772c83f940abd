"""The raw responses of a saved run, parsed again: would today's parser make the same columns of them?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from pytest_llmperf import load
from pytest_llmperf.errors import SavedRunError
from pytest_llmperf.load.raw_file import FOLDER
from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.row import Row
from pytest_llmperf.model.records import Records
from pytest_llmperf.model.review import Rereading

_SHOWN = 60
"""Characters of a value in a message: a column of chunks may have thousands of them."""

_OF_CHUNKS = ("chunk_ns", "chunk_tokens")


def reread(folder: Path, records: Records) -> Rereading | None:
    """Compare the raw responses below a run's folder with its columns; None where none were kept.

    Raises:
        SavedRunError: a file of them is damaged, or does not belong to these columns.
    """
    if not (folder / FOLDER).is_dir():
        return None
    differing: Counter[str] = Counter()
    responses, first = 0, ""
    try:
        for response in load.reread(folder / FOLDER):
            responses += 1
            for name, stored, now in _differences(response.row, records, masked=response.masked):
                differing[name] += 1
                first = (
                    first or f"{name} of request {response.row.index}: stored {_cut(stored)}, read today {_cut(now)}"
                )
    except (OSError, ValueError) as error:
        raise SavedRunError(str(error)) from None
    return Rereading(responses=responses, differing=dict(differing), first=first)


def _differences(row: Row, records: Records, *, masked: bool) -> Iterator[tuple[str, Any, Any]]:
    """Column, stored and new value of what differs. The text of a response that was masked is another one."""
    if row.index >= len(records):
        raise ValueError(f"there is a raw response of request {row.index}, and the columns have {len(records)}")
    stored, now = _values(records, row.index), _values(records_of([row]), 0)
    for name, before in stored.items():
        if before != now[name] and not (masked and name == "text_sha256"):
            yield name, before, now[name]


def _values(records: Records, index: int) -> dict[str, Any]:
    """One request, as plain values by column."""
    own = slice(int(records.chunk_start[index]), int(records.chunk_start[index + 1]))
    values: dict[str, Any] = {}
    for field in fields(Records):
        column = getattr(records, field.name)
        if field.name in _OF_CHUNKS:
            values[field.name] = column[own].tolist()
        elif field.name != "chunk_start":
            values[field.name] = column[index] if isinstance(column, tuple) else int(column[index])
    return values


def _cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
