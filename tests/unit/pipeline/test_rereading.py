"""Raw responses of a saved run against its columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_llmperf.errors import SavedRunError
from pytest_llmperf.load.capture import Capture
from pytest_llmperf.model.review import Rereading
from pytest_llmperf.pipeline.rereading import reread
from tests.fake_server import Behaviour, FakeServer
from tests.unit.load.driving import drive


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    """Six requests with all that was answered, the last two refused."""
    with FakeServer(Behaviour(tokens_per_chunk=3, fault="status:500", fault_from=4)) as server:
        return drive(server, tmp_path, keep_raw=True)


def test_the_parser_of_the_run_reads_what_it_read(capture: Capture, tmp_path: Path) -> None:
    kept = capture.raw_kept
    assert kept > 4
    assert reread(tmp_path, capture.records) == Rereading(responses=kept, differing={}, first="")


def test_a_run_without_raw_responses_has_nothing_to_read_again(capture: Capture, tmp_path: Path) -> None:
    assert reread(tmp_path / "elsewhere", capture.records) is None


def test_what_another_parser_made_of_them_is_told(capture: Capture, tmp_path: Path) -> None:
    other = replace(
        capture.records,
        output_tokens=np.where(capture.records.ok, 7, -1),
        chunk_ns=capture.records.chunk_ns + 1,
        reason=("",) * len(capture.records),
    )
    told = reread(tmp_path, other)
    assert told is not None
    assert told.differing["output_tokens"] == told.differing["chunk_ns"] == 4
    assert "reason" in told.differing
    assert told.first == "output_tokens of request 0: stored 7, read today 8"


def test_raw_responses_of_another_run_are_an_error(capture: Capture, tmp_path: Path) -> None:
    fewer = capture.records
    columns: dict[str, Any] = {name: getattr(fewer, name)[:1] for name in (
        "scheduled_ns", "sent_ns", "first_token_ns", "last_token_ns", "done_ns", "input_tokens",
        "planned_input_tokens", "output_tokens", "token_source", "cached_tokens", "asked_tokens", "status", "outcome",
        "reason", "text_sha256", "chunk_source",
    )}  # fmt: skip
    end = int(fewer.chunk_start[1])
    chunks: dict[str, Any] = {"chunk_ns": fewer.chunk_ns[:end], "chunk_tokens": fewer.chunk_tokens[:end]}
    with pytest.raises(SavedRunError, match="the columns have 1"):
        reread(tmp_path, replace(fewer, **columns, **chunks, chunk_start=fewer.chunk_start[:2]))
