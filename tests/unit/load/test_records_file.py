from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from pytest_llmperf.load import read_records
from pytest_llmperf.load.records_file import records_of, write_records
from pytest_llmperf.load.row import Row
from pytest_llmperf.model.records import Records

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


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    file = tmp_path / "other.npz"
    np.savez(file, a=np.zeros(1))
    with pytest.raises(ValueError, match=r"other\.npz.*no file of records"):
        read_records(file)
