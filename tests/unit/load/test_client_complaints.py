"""What users of other load generators complained of, about the client itself: see tests/complaints.md.

None of this is a matter of time: what makes a client slow, or its stamps late, is looked for where it is made.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_llmperf.load.connection import Connection, Traffic
from pytest_llmperf.load.conversation import Conversation
from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.facts import client_facts
from pytest_llmperf.load.fleet import Fleet
from pytest_llmperf.load.http1 import render_request
from pytest_llmperf.load.lag_probe import PERIOD_NS, LagProbe
from pytest_llmperf.load.pool import Pool
from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.rows_file import WorkerReport
from pytest_llmperf.load.runner import Runner
from pytest_llmperf.load.shares import split
from pytest_llmperf.load.worker import Session
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.outcome import NEVER, Outcome
from pytest_llmperf.model.suite import Load
from pytest_llmperf.workload import Material, Vocabulary
from tests.fake_server import Behaviour, FakeServer
from tests.unit.load.driving import TOKENS, drive, planned
from tests.unit.load.responses import received, with_length

BURST = Load(kind="burst")


def closed(value: float) -> Load:
    return Load(kind="concurrency", value=value)


@pytest.mark.parametrize("how", [closed(600), BURST], ids=str)
def test_so_many_streams_as_were_asked_for_are_in_flight_at_the_server(how: Load, tmp_path: Path) -> None:
    """Answers begin when all 600 are there: a limit of connections anywhere would be a stall."""
    with FakeServer(Behaviour(together=600)) as server:
        capture = drive(server, tmp_path, planned(600, how))
    assert capture.records.ok.all()
    assert server.max_in_flight == capture.client.max_in_flight == 600
    assert server.connections == 600


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_never_more_are_in_flight_than_were_asked_for(workers: int, tmp_path: Path) -> None:
    with FakeServer(Behaviour(first_token_s=0.01)) as server:
        capture = drive(server, tmp_path, planned(60, closed(7)), workers=workers)
    assert capture.records.ok.all()
    assert server.max_in_flight == server.connections == capture.client.max_in_flight == 7


@pytest.mark.parametrize("how", [closed(150), BURST], ids=str)
def test_every_connection_of_the_start_is_open_before_it(how: Load, tmp_path: Path) -> None:
    """And so nobody waits for one in its TTFT, and a burst is as wide as it is long."""
    with FakeServer() as server:
        endpoint = Endpoint(url=server.url, model="fake")
        jobs = split(planned(150, how), endpoint, tmp_path, workers=2, request_timeout_s=60)
        with Fleet(jobs, tmp_path) as fleet:
            fleet.wait_until_ready()
            deadline = time.monotonic() + 10  # of the server's own thread, which may not have looked yet
            while server.connections < 150 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert (server.connections, len(server.seen)) == (150, 0)


class SlowPool(Pool):
    """Its connections take as long to open as they do through a TLS handshake across an ocean."""

    opened_ns = 0

    async def open(self) -> Connection:
        await asyncio.sleep(0.05)
        connection = await super().open()
        self.opened_ns = time.monotonic_ns()
        return connection


def exchanges(count: int, at_ns: int = NEVER) -> list[Exchange]:
    body = json.dumps({"prompt": "a", "max_tokens": 2, "stream": True}).encode()
    return [Exchange(request=render_request("h", "/v1/completions", {}, body), at_ns=at_ns) for _ in range(count)]


def test_the_time_to_connect_is_in_no_latency() -> None:
    async def run(url: str) -> tuple[Exchange, int]:
        pool = SlowPool(url, Traffic())
        [exchange] = exchanges(1)
        await Runner([Conversation([exchange], [b""], bytes)], pool, 10).run_closed(1)
        pool.close()
        return exchange, pool.opened_ns

    with FakeServer() as server:
        exchange, opened_ns = asyncio.run(run(server.url))
    assert exchange.framing.head is not None
    assert exchange.sent_ns >= opened_ns > 0


def test_a_late_send_delays_no_other() -> None:
    """inference-perf#86: the rate sank as more requests were in flight."""

    class FirstIsSlow(SlowPool):
        async def open(self) -> Connection:
            if self.opened_ns == 0:
                self.opened_ns = -1
                return await super().open()
            return await Pool.open(self)

    async def run(url: str) -> list[Exchange]:
        pool = FirstIsSlow(url, Traffic())
        late, *others = made = exchanges(5, at_ns=time.monotonic_ns())
        await Runner([Conversation([each], [b""], bytes) for each in made], pool, 10).run_open()
        pool.close()
        assert all(each.sent_ns < late.sent_ns for each in others)
        return made

    with FakeServer() as server:
        made = asyncio.run(run(server.url))
    assert len({each.at_ns for each in made}) == 1, "when it was due is not when it was sent"


@pytest.mark.parametrize("api", ["completions", "chat"])
def test_requests_are_bytes_before_the_clock_starts(api: str, tmp_path: Path) -> None:
    what = planned(api=api)
    [job] = split(what, Endpoint(url="http://h:1", model="m"), tmp_path, workers=1, request_timeout_s=9)
    session = Session(job, "")
    assert [exchange.request.partition(b"\r\n\r\n")[2] for exchange in session.exchanges] == [
        request.body for request in what.requests
    ]


LONG: dict[str, Any] = {
    "kind": "token-ids",
    "input_tokens": 50_000,
    "material": Material(vocabulary=Vocabulary(128_000)),
}


def test_prompts_of_fifty_thousand_tokens_arrive_whole(tmp_path: Path) -> None:
    with FakeServer(Behaviour(together=4)) as server:
        records = drive(server, tmp_path, planned(8, closed(4), **LONG)).records
    assert records.ok.all()
    assert [len(seen.json["prompt"]) for seen in server.seen] == [50_000] * 8
    assert records.input_tokens.tolist() == [50_000] * 8


def test_a_prompt_that_the_server_does_not_read_holds_no_other_up(tmp_path: Path) -> None:
    """Two long prompts; the first connection is read only when the second one has had its answer."""
    body = b"".join(b'data: {"choices": [{"text": "w"}]}\n\n' for _ in range(TOKENS - 1))
    body += b'data: {"choices": [{"text": "w", "finish_reason": "length"}]}\n\ndata: [DONE]\n\n'
    answer = with_length(body)[0]

    def serve(listener: socket.socket) -> None:
        first, second = listener.accept()[0], listener.accept()[0]
        for connection in (second, first):
            with connection, connection.makefile("rb") as stream:
                length = 0
                while (line := stream.readline().lower()) != b"\r\n":
                    length = int(line.partition(b":")[2]) if line.startswith(b"content-length") else length
                stream.read(length)
                connection.sendall(answer)

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # far less than a prompt
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        server = FakeServer(port=listener.getsockname()[1])
        capture = drive(server, tmp_path, planned(2, BURST, **LONG), stall_timeout_s=10)
        thread.join(10)
    assert capture.records.reason == ("", "")


def test_reading_is_never_paused() -> None:
    """However much comes at once, nothing is asked of the transport but to write and to be dropped."""
    event = b'data: {"choices": [{"text": "%s"}]}\n\n' % (b"w" * 200)
    raw, _ = with_length(event * 40_000)
    exchange = received(raw, [*range(262_144, len(raw), 262_144), len(raw)])
    assert bytes(exchange.raw) == raw
    assert exchange.outcome is Outcome.OK


def test_a_loop_that_is_held_up_is_seen() -> None:
    """llm-d-benchmark#261: TTFT and ITL were the delays of the client's own coroutines."""

    async def run() -> LagProbe:
        probe = LagProbe(asyncio.get_running_loop())
        probe.start()
        await asyncio.sleep(0.03)
        time.sleep(0.1)  # noqa: ASYNC251 (what holds it up)
        await asyncio.sleep(0.03)
        probe.stop()
        return probe

    lags_ns = asyncio.run(run()).lags_ns
    assert max(lags_ns) >= 80_000_000
    late = [lag for lag in lags_ns if lag >= max(lags_ns) - 40_000_000][:4]
    assert [late[0] - lag for lag in late] == [0, PERIOD_NS, 2 * PERIOD_NS, 3 * PERIOD_NS], "each time that was due"
    report = WorkerReport(rows=(), lags_ns=tuple(lags_ns), cpu_share=0.0)
    assert client_facts([report], records_of([]), closed(1)).lag_max_ms >= 80


def test_a_run_ends_with_its_last_answer_and_not_with_its_schedule(tmp_path: Path) -> None:
    """inference-perf#245: a stage ended while requests of it were under way, or had not been sent."""
    what = planned(10, Load(kind="request_rate", value=100.0))
    with FakeServer(Behaviour(first_token_s=0.3)) as server:
        capture = drive(server, tmp_path, what)
    assert capture.records.ok.all()
    assert len(server.seen) == 10
    assert capture.window_ns[1] == capture.records.done_ns.max()
    assert capture.window_ns[1] - capture.window_ns[0] >= max(request.at_ns for request in what.requests) + 300_000_000


@pytest.mark.parametrize("fault", ["status:503", "close:0", "close:3", "error:2", "reset:1"])
def test_a_request_that_failed_is_not_sent_again(fault: str, tmp_path: Path) -> None:
    with FakeServer(Behaviour(fault=fault)) as server:
        records = drive(server, tmp_path, planned(4, closed(1))).records
    assert (records.outcome == Outcome.FAILED).all()
    assert sorted(np.unique([seen.body for seen in server.seen], return_counts=True)[1].tolist()) == [1] * 4


@pytest.mark.parametrize(("fault_from", "sent"), [(0, [1, 1, 1, 1]), (2, [1, 1, 2, 1])])
def test_only_a_kept_connection_that_was_closed_without_a_byte_is_tried_again_and_once(
    fault_from: int, sent: list[int], tmp_path: Path
) -> None:
    what = planned(4, closed(1))
    with FakeServer(Behaviour(fault="hangup", fault_from=fault_from)) as server:
        records = drive(server, tmp_path, what).records
    bodies = [seen.body for seen in server.seen]
    assert [bodies.count(request.body) for request in what.requests] == sent
    assert set(records.reason[fault_from:]) == {"connection closed before an answer"}
