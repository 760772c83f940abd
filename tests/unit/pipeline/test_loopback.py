"""The loopback servers, as processes."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from pytest_llmperf import load, workload
from pytest_llmperf.errors import ClientError
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.suite import Load, Workload
from pytest_llmperf.pipeline.loopback import Loopback

TOKENS = 10


def drive(loopback: Loopback, folder: Path, requests: int, concurrency: int) -> load.Capture:
    asked = Workload(name="w", kind="words", requests=requests, input_tokens=8, output_tokens=TOKENS)
    plan = workload.plan(asked, Load(kind="concurrency", value=concurrency), seed=0, model_id="m")
    endpoint = Endpoint(url=loopback.url, model="m")
    return load.drive(plan, endpoint, folder, stall_timeout_s=20, request_timeout_s=20, alive=loopback.alive)


@pytest.mark.parametrize("processes", [1, 2])
def test_every_token_that_was_asked_for_is_sent_counted_and_stamped(processes: int, tmp_path: Path) -> None:
    with Loopback(tick_s=0.005, processes=processes) as loopback:
        capture = drive(loopback, tmp_path, requests=12, concurrency=4)
        pace = loopback.stop()
    assert capture.records.ok.all(), capture.records.reason
    assert capture.records.output_tokens.tolist() == [TOKENS] * 12
    assert pace.chunks == len(capture.records.chunk_ns) == 12 * TOKENS
    assert pace.ticks > 0
    assert pace.gap_p50_ms > 1
    assert not loopback.alive()


def test_a_client_that_goes_ends_its_stream_alone(tmp_path: Path) -> None:
    with Loopback(tick_s=0.005) as loopback:
        host, port = loopback.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as rude:
            body = json.dumps({"max_tokens": 100_000}).encode()
            rude.sendall(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            assert rude.recv(10).startswith(b"HTTP/1.1")
        capture = drive(loopback, tmp_path, requests=4, concurrency=2)
        assert capture.records.ok.all(), capture.records.reason
        assert loopback.stop().chunks >= 4 * TOKENS


def test_a_server_that_cannot_keep_its_pace_says_so(tmp_path: Path) -> None:
    with Loopback(tick_s=1e-6) as loopback:
        drive(loopback, tmp_path, requests=8, concurrency=8)
        pace = loopback.stop()
    assert pace.missed > 0
    assert not pace.kept


def test_nothing_is_left_behind_when_it_is_not_stopped() -> None:
    with Loopback(tick_s=0.01, processes=2) as loopback:
        assert loopback.alive()
    assert not loopback.alive()


def test_a_server_that_was_killed_is_an_error_and_not_a_slow_client() -> None:
    with Loopback(tick_s=0.01) as loopback:
        loopback._processes[0].kill()
        with pytest.raises(ClientError, match="did not say how it had fared"):
            loopback.stop()
