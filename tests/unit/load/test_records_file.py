from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from pytest_llmperf.load import read_records
from pytest_llmperf.load.records_file import records_of, write_records
from pytest_llmperf.load.row import Row
from pytest_llmperf.model.records import Records, TokenSource

ROWS = [
    Row(index=1, planned_input_tokens=-1, asked_tokens=4, reason="käputt", outcome=1),
    Row(index=0, planned_input_tokens=5, asked_tokens=3, outcome=0, sent_ns=10, chunk_ns=[20, 30], text_sha256="ab"),
    Row(index=2, planned_input_tokens=6, asked_tokens=2, outcome=0, sent_ns=11, chunk_ns=[2**62], cached_tokens=0),
]


def test_rows_become_columns_in_the_order_of_the_plan() -> None:
    records = records_of(ROWS)
    assert records.planned_input_tokens.tolist() == [5, -1, 6]
    assert records.chunk_ns.tolist() == [20, 30, 2**62]
    assert records.chunk_start.tolist() == [0, 2, 2, 3]
    assert records.reason == ("", "käputt", "")
    assert records.ok.tolist() == [True, False, True]


@pytest.mark.parametrize("rows", [ROWS, []])
def test_what_is_written_is_read_back(rows: list[Row], tmp_path: Path) -> None:
    records = records_of(rows)
    write_records(records, tmp_path / "records.npz")
    again = read_records(tmp_path / "records.npz")
    for field in fields(Records):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(records, field.name), strict=True)
    assert isinstance(again.reason, tuple)
    assert [file.name for file in tmp_path.iterdir()] == ["records.npz"]


def test_tokens_of_chunks_are_columns_and_unknown_where_a_row_has_none() -> None:
    counted = Row(index=3, planned_input_tokens=1, asked_tokens=5, outcome=0, chunk_ns=[40, 50], chunk_tokens=[2, 3])
    records = records_of([*ROWS, counted])
    assert records.chunk_tokens.dtype == np.int16
    assert records.chunk_tokens.tolist() == [-1, -1, -1, 2, 3]


def test_a_file_of_an_older_version_has_unknown_tokens_of_chunks(tmp_path: Path) -> None:
    rows = [replace(ROWS[1], output_tokens=2, token_source=TokenSource.USAGE), ROWS[0]]
    write_records(records_of(rows), tmp_path / "now.npz")
    with np.load(tmp_path / "now.npz") as now:
        older = {name: now[name] for name in now if name not in {"token_source", "chunk_source", "chunk_tokens"}}
    older |= {"reason": np.array(["", "käputt"]), "text_sha256": np.array(["ab", ""])}
    np.savez(tmp_path / "older.npz", allow_pickle=False, **older)
    records = read_records(tmp_path / "older.npz")
    assert records.chunk_tokens.tolist() == [-1, -1]
    assert records.chunk_tokens.dtype == np.int16
    assert records.token_source.tolist() == [TokenSource.USAGE, TokenSource.NONE]
    assert records.chunk_source.tolist() == [TokenSource.NONE] * 2
    assert (records.reason, records.text_sha256) == (("", "käputt"), ("ab", ""))


def test_one_long_reason_does_not_widen_the_column(tmp_path: Path) -> None:
    rows = [replace(ROWS[0], index=index, reason="x" * 500 * (index == 0)) for index in range(1000)]
    write_records(records_of(rows), tmp_path / "long.npz")
    write_records(records_of([replace(row, reason="") for row in rows]), tmp_path / "short.npz")
    assert (tmp_path / "long.npz").stat().st_size - (tmp_path / "short.npz").stat().st_size < 1000


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    file = tmp_path / "other.npz"
    np.savez(file, a=np.zeros(1))
    with pytest.raises(ValueError, match=r"other\.npz.*no file of records"):
        read_records(file)


def test_a_chunk_takes_about_ten_bytes(tmp_path: Path) -> None:
    chunks, requests = 1000, 50
    row = replace(ROWS[1], chunk_ns=list(range(chunks)), chunk_tokens=[1] * chunks, text_sha256="ab" * 32)
    write_records(records_of([replace(row, index=index) for index in range(requests)]), tmp_path / "records.npz")
    assert (tmp_path / "records.npz").stat().st_size <= 10.5 * chunks * requests
