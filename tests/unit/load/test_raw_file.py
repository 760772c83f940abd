"""Raw responses on request: kept as they came, read back as they were read."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.raw_file import RAW_LIMIT, reread
from pytest_llmperf.load.row import Row
from pytest_llmperf.load.rows_file import WorkerReport, read_rows, write_rows
from pytest_llmperf.model.outcome import Outcome
from tests.fake_server import Behaviour, FakeServer
from tests.unit.load.driving import drive
from tests.unit.load.test_row import HEAD, STREAM, chunked, received
from tests.unit.load.test_rows_file import KEY, answer, ended, job_of

RESPONSES: dict[str, Callable[[], Exchange]] = {
    "whole": lambda: received(HEAD + chunked(STREAM, 99), [50, 400, 401, 3000]),
    "refused": lambda: ended(answer(b'{"error": {"message": "too long"}}')),
    "no HTTP": lambda: ended(b"HTTP/3 what is this\r\n\r\n"),
    "bad chunk size": lambda: ended(HEAD + b"zz\r\n"),
    "cut": lambda: closed(HEAD + chunked(STREAM, 99)[:700]),
    "nothing": lambda: closed(b""),
}


def closed(raw: bytes) -> Exchange:
    """The server closed the connection."""
    exchange = Exchange(request=b"", sent_ns=10, raw=bytearray(raw), stamps=array("q", [20]))
    exchange.offsets.append(len(raw))
    exchange.framing.complete(exchange.raw)
    exchange.end(30, Outcome.FAILED, "connection closed mid-stream")
    return exchange


def kept(folder: Path, exchanges: list[Exchange], key: str = "", limit: int = RAW_LIMIT) -> WorkerReport:
    job = job_of(folder, len(exchanges))
    job = replace(job, raw=str(folder / "raw" / "worker-0.raw"), raw_limit=limit, exact_output=False)
    write_rows(job, exchanges, [], 0.0, key)
    report = read_rows(folder / "rows.json")
    assert report is not None
    return report


def plain(row: Row) -> dict[str, Any]:
    """As the file of rows has it."""
    return dict(orjson.loads(orjson.dumps(asdict(row))))


def test_what_is_kept_means_the_same_when_it_is_read_again(tmp_path: Path) -> None:
    report = kept(tmp_path, [make() for make in RESPONSES.values()])
    again = list(reread(tmp_path / "raw"))
    assert report.raw_kept == len(again) == len(RESPONSES)
    for name, row, read in zip(RESPONSES, report.rows, again, strict=True):
        assert plain(read.row) == plain(row), name
        assert not read.masked
    assert report.rows[0].chunk_ns


def test_a_response_can_be_found_with_grep(tmp_path: Path) -> None:
    kept(tmp_path, [RESPONSES["refused"]()])
    assert answer(b'{"error": {"message": "too long"}}') in (tmp_path / "raw" / "worker-0.raw").read_bytes()


@pytest.mark.parametrize(
    "raw",
    [
        answer(b"x" * 180 + b" Bearer " + KEY.encode()),
        HEAD + chunked(STREAM.replace(b'"content":" ', b'"content":" ' + KEY.encode()), 99),
        b"HTTP/3 " + b"x" * 60 + KEY.encode() + b"\r\n\r\n",
    ],
    ids=["refusal", "stream", "no HTTP"],
)
def test_not_even_half_of_the_key_is_kept_and_it_is_said_that_it_was_cut_out(raw: bytes, tmp_path: Path) -> None:
    report = kept(tmp_path, [ended(raw)], key=KEY)
    written = (tmp_path / "raw" / "worker-0.raw").read_bytes()
    assert b"0123" not in written
    assert b"secret" not in written
    [again] = reread(tmp_path / "raw")
    assert again.masked
    assert plain(again.row) | {"text_sha256": ""} == plain(report.rows[0]) | {"text_sha256": ""}


def test_the_file_never_grows_beyond_its_limit_and_the_rows_are_whole(tmp_path: Path) -> None:
    report = kept(tmp_path, [RESPONSES["whole"]() for _ in range(10)], limit=20_000)
    assert (tmp_path / "raw" / "worker-0.raw").stat().st_size <= 20_000
    assert 0 < report.raw_kept < 10
    assert len(list(reread(tmp_path / "raw"))) == report.raw_kept
    assert len(report.rows) == 10


def test_a_folder_that_cannot_be_written_costs_the_raw_bytes_and_not_the_run(tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("in the way")
    report = kept(tmp_path, [RESPONSES["whole"]()])
    assert report.raw_kept == 0
    assert report.rows[0].outcome == Outcome.OK


def test_a_full_disk_costs_the_raw_bytes_and_not_the_run(tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "worker-0.raw").symlink_to("/dev/full")
    report = kept(tmp_path, [RESPONSES["whole"]() for _ in range(50)])
    assert report.raw_kept == 0
    assert [row.outcome for row in report.rows] == [Outcome.OK] * 50
    assert not list((tmp_path / "raw").iterdir())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda raw: raw[:-100], "it ends within a response"),
        (lambda raw: raw.replace(b'"llmperf_raw":1', b'"llmperf_raw":2'), "format 2, and this pytest-llmperf reads"),
        (lambda raw: raw.replace(b'"index"', b'"other"'), "damaged, or no file of raw responses: 'index'"),
        (lambda raw: b"\x00\x01", "damaged, or no file of raw responses"),
        (lambda raw: b"", "damaged, or no file of raw responses"),
        (lambda raw: b"[]\n", "damaged, or no file of raw responses"),
    ],
)
def test_a_damaged_file_is_named(change: Any, says: str, tmp_path: Path) -> None:
    kept(tmp_path, [RESPONSES["whole"]()])
    file = tmp_path / "raw" / "worker-0.raw"
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(ValueError, match=r"worker-0\.raw: ") as caught:
        list(reread(tmp_path / "raw"))
    assert says in str(caught.value)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_drive_keeps_all_responses_only_when_it_is_told_to(workers: int, tmp_path: Path) -> None:
    with FakeServer(Behaviour(tokens_per_chunk=3)) as server:
        without = drive(server, tmp_path / "without", workers=workers)
        told = drive(server, tmp_path / "with", workers=workers, keep_raw=True)
    assert (without.raw_kept, told.raw_kept) == (0, 6)
    assert not (tmp_path / "without" / "raw").exists()
    assert len(list((tmp_path / "with" / "raw").iterdir())) == workers
    assert sorted(response.row.index for response in reread(tmp_path / "with" / "raw")) == list(range(6))
