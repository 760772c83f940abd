"""What a worker writes of answers that say too much."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.http1 import HttpError
from pytest_llmperf.load.job import Job, JobRequest
from pytest_llmperf.load.row import Row
from pytest_llmperf.load.rows_file import read_rows, write_rows
from pytest_llmperf.model.outcome import Outcome

KEY = "sk-0123456789-very-secret"


def ended(raw: bytes) -> Exchange:
    exchange = Exchange(request=b"", sent_ns=10, reads=[raw])
    exchange.stamps.append(20)
    try:
        exchange.framing.complete(exchange.raw)
        exchange.end(30)
    except HttpError as error:
        exchange.end(30, Outcome.FAILED, str(error))
    return exchange


def job_of(folder: Path, requests: int = 1) -> Job:
    return Job(
        url="http://h:1",
        path="/v1/completions",
        api_key_env="KEY",
        requests=tuple(
            JobRequest(index=index, body="{}", at_ns=None, planned_input_tokens=1, asked_tokens=1)
            for index in range(requests)
        ),
        turns=1,
        concurrency=1,
        exact_output=True,
        request_timeout_s=9,
        rows=str(folder / "rows.json"),
        failed=str(folder / "failed"),
    )


def written(folder: Path, raw: bytes, key: str = KEY) -> Row:
    write_rows(job_of(folder), [ended(raw)], [], 0.0, key)
    report = read_rows(folder / "rows.json")
    assert report is not None
    return report.rows[0]


def answer(body: bytes, status: int = 400, kind: str = "text/plain") -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    "raw",
    [
        answer(b"x" * 180 + b" Bearer " + KEY.encode()),
        answer(b'{"error": {"message": "' + b"x" * 480 + KEY.encode() + b'"}}'),
        answer(b'{"error": "' + KEY.replace("-", "\\u002d").encode() + b'"}'),
        answer(b"x" * (64 * 1024 - 85) + KEY.encode()),
        answer(b"hello", 200, kind="x/" + KEY),
        b"HTTP/3 " + b"x" * 60 + KEY.encode() + b"\r\n\r\n",
    ],
    ids=["text cut", "message cut", "escaped", "kept bytes cut", "content type", "no HTTP"],
)
def test_not_even_half_of_the_key_is_written(raw: bytes, tmp_path: Path) -> None:
    row = written(tmp_path, raw)
    assert row.outcome == Outcome.FAILED
    everything = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"0123" not in everything
    assert b"secret" not in everything


def test_a_key_that_looks_like_the_grammar_changes_no_outcome(tmp_path: Path) -> None:
    chunk = b'data: {"choices": [{"text": "a", "finish_reason": "length"}]}\n\ndata: [DONE]\n\n'
    assert written(tmp_path, answer(chunk, 200), key="text").outcome == Outcome.OK


def test_a_reason_of_megabytes_is_cut(tmp_path: Path) -> None:
    row = written(tmp_path, answer(b'{"error": {"message": "' + b"E" * 2_000_000 + b'"}}'))
    assert row.reason.startswith("HTTP 400: EEE")
    assert len(row.reason) < 600


def test_a_reason_with_half_a_surrogate_pair_can_be_written(tmp_path: Path) -> None:
    row = written(tmp_path, answer(b'data: {"error": {"message": "ill \\ud83d"}}\n\n', 200))
    assert row.reason == "error event: ill ?"


def test_responses_are_let_go_of_as_they_are_read(tmp_path: Path) -> None:
    exchanges = [ended(b"HTTP/1.1 500 X\r\nContent-Length: 3\r\n\r\nill") for _ in range(2)]
    write_rows(job_of(tmp_path, 2), exchanges, [], 0.0, "")
    assert not any(exchange.reads for exchange in exchanges)
    assert sorted(file.name for file in (tmp_path / "failed").iterdir()) == ["request-0.http", "request-1.http"]
