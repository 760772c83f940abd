"""The analysis of a run: from what a worker holds when the clock stops to every metric.

``python -m tests.benchmarks.analysis [CHUNKS]`` prints CPU time a chunk, its ratio to ``orjson.loads`` of the same
events, and the peak of memory; without a size, for each of ``SIZES`` in a process of its own.
"""

from __future__ import annotations

import gc
import importlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson

from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.job import Job, JobRequest
from pytest_llmperf.load.rows_file import read_rows, write_rows

SIZES = (10_000, 100_000, 1_000_000)
_TOKENS = 1000
"""Of each stream."""
_START_NS, _GAP_NS = 10**15, 20_000_000
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_DONE = b"[DONE]"


def datas(tokens: int = _TOKENS) -> list[bytes]:
    """The JSON of each event of one stream, usage last."""
    head = {"id": "cmpl-93213bfda3716adc", "object": "text_completion", "created": 1796049204, "model": "tiny"}
    choice = {"index": 0, "text": " people", "logprobs": None, "stop_reason": None, "token_ids": None}
    ends = [None] * (tokens - 1) + ["length"]
    chunks: list[object] = [{**head, "choices": [{**choice, "finish_reason": end}]} for end in ends]
    usage = {"prompt_tokens": 67, "total_tokens": 67 + tokens, "completion_tokens": tokens}
    return [orjson.dumps(chunk) for chunk in (*chunks, {**head, "choices": [], "usage": usage})]


def fresh(pieces: Sequence[bytes]) -> list[bytes]:
    """Copies: bytes that came from a socket are in no cache."""
    return [bytes(bytearray(piece)) for piece in pieces]


def captured(chunks: int) -> tuple[Job, list[Exchange]]:
    """A worker's job and exchanges: ``chunks`` in streams of 1000, each chunk a read of its own."""
    events = [b"data: %b\n\n" % data for data in (*datas(), _DONE)]
    reads = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
    reads = [_HEAD + reads[0], *reads[1:-1], reads[-1] + b"0\r\n\r\n"]
    exchanges = []
    for number in range(chunks // _TOKENS):
        sent_ns = _START_NS + number * 1000
        exchange = Exchange(request=b"", sent_ns=sent_ns)
        exchange.reads = fresh(reads)
        exchange.stamps = [sent_ns + (place + 1) * _GAP_NS for place in range(len(reads))]
        assert [exchange.framing.complete(read) for read in reads][-1]
        exchange.end(exchange.stamps[-1])
        exchanges.append(exchange)
    return _job(len(exchanges)), exchanges


def parsed(job: Job, exchanges: Sequence[Exchange], folder: Path) -> Path:
    """A worker's part, without garbage collection as there: the file of rows. The exchanges are used up."""
    file = folder / "rows.json"
    gc.freeze()
    gc.disable()
    try:
        write_rows(replace(job, rows=str(file), failed=str(folder)), exchanges, (), 0.0, "")
    finally:
        gc.enable()
        gc.unfreeze()
    return file


def computed(file: Path) -> dict[str, float]:
    """The driver's part: every metric."""
    from pytest_llmperf import metrics  # noqa: PLC0415 (numpy, which a worker does not have)
    from pytest_llmperf.load.records_file import records_of  # noqa: PLC0415
    from pytest_llmperf.model.slo import Slo  # noqa: PLC0415

    report = read_rows(file)
    assert report is not None
    records = records_of(report.rows)
    window_ns = (_START_NS, int(records.done_ns.max()))
    return metrics.compute(records, window_ns, None, slo=Slo(ttft_s=1, tpot_s=1), gpus=8)


def _job(requests: int) -> Job:
    asked = [
        JobRequest(index=index, body="", at_ns=None, planned_input_tokens=66, asked_tokens=_TOKENS)
        for index in range(requests)
    ]
    return Job(
        url="", path="", api_key_env=None, requests=tuple(asked), turns=1, concurrency=None, exact_output=True,
        request_timeout_s=1, rows="", failed="",
    )  # fmt: skip


def _measure(chunks: int) -> dict[str, float]:
    """In this process, which should be a fresh one."""
    alone = 0.0
    for _ in range(chunks // _TOKENS):
        own = fresh(datas())
        start = time.process_time()
        for data in own:
            orjson.loads(data)
        alone += time.process_time() - start
    job, exchanges = captured(chunks)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        file = parsed(job, exchanges, Path(folder))
        worker, peak_of_worker = time.process_time() - start, _peak_mb()
        importlib.import_module("pytest_llmperf.metrics.formulas")  # numpy, which a worker does not have
        start = time.process_time()
        values = computed(file)
        driver = time.process_time() - start
    assert values["request_throughput"] > 0, values
    return {
        "chunks": chunks,
        "worker_us_per_chunk": 1e6 * worker / chunks,
        "driver_us_per_chunk": 1e6 * driver / chunks,
        "orjson_us_per_chunk": 1e6 * alone / chunks,
        "ratio": (worker + driver) / alone,
        "worker_peak_mb": peak_of_worker,
        "peak_mb": _peak_mb(),
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    if sizes := sys.argv[1:]:
        print(json.dumps(_measure(int(sizes[0]))))  # noqa: T201 (a program of its own)
        return
    for size in SIZES:
        subprocess.run([sys.executable, "-m", "tests.benchmarks.analysis", str(size)], check=True)


if __name__ == "__main__":
    main()
