"""The client against a server that misbehaves, dies or hangs, and with workers that do."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf import load
from pytest_llmperf.errors import ClientError, UsageError
from pytest_llmperf.load import wire
from pytest_llmperf.load.fleet import Fleet
from pytest_llmperf.load.shares import split
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.records import NEVER, Outcome
from pytest_llmperf.model.suite import Load
from tests.fake_server import Behaviour, FakeServer
from tests.unit.load.driving import drive, planned


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        ("status:503", 503, "HTTP 503: fake trouble 503"),
        ("status:400", 400, "HTTP 400: fake trouble 400"),
        ("close:3", 200, "connection closed mid-stream, after 3 chunks"),
        ("close:0", 200, "connection closed mid-stream, after 0 chunks"),
        ("reset:3", 200, "connection reset mid-stream, after 3 chunks"),
        ("error:3", 200, "error event: the fake engine is ill"),
        ("short:5", 200, "asked 8 output tokens, got 5"),
    ],
)
def test_a_failed_request_fails_alone_and_says_why(fault: str, status: int, reason: str, tmp_path: Path) -> None:
    with FakeServer(Behaviour(fault=fault, fault_from=4)) as server:
        capture = drive(server, tmp_path, planned(6, Load(kind="concurrency", value=1)))
    assert capture.end == "complete"
    assert capture.records.reason == ("", "", "", "", reason, reason)
    assert capture.records.outcome.tolist() == [0, 0, 0, 0, Outcome.FAILED, Outcome.FAILED]
    assert capture.records.status.tolist() == [200] * 4 + [status] * 2
    assert (tmp_path / "failed" / "request-5.http").read_bytes().startswith(b"HTTP/1.1 ")


def test_an_answer_that_is_no_stream_is_shown(tmp_path: Path) -> None:
    with FakeServer(Behaviour(fault="json")) as server:
        (reason, *_) = drive(server, tmp_path).records.reason
    assert "application/json" in reason


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    capture = drive(FakeServer(port=port), tmp_path)
    assert capture.end == "complete"
    assert capture.records.reason == ("connection refused",) * 6
    assert (capture.records.sent_ns == NEVER).all()


@pytest.mark.parametrize("fault", ["deaf", "silent", "stall:3"])
def test_a_stall_ends_the_run_and_keeps_what_came(fault: str, tmp_path: Path) -> None:
    with FakeServer(Behaviour(fault=fault, fault_from=3)) as server:
        capture = drive(server, tmp_path, stall_timeout_s=0.5)
    assert capture.end == "stalled"
    outcomes = capture.records.outcome.tolist()
    assert outcomes[:3] == [Outcome.OK] * 3
    waiting = [row for row, sent in enumerate(capture.records.sent_ns) if sent != NEVER and outcomes[row] != Outcome.OK]
    assert waiting
    for row in waiting:
        assert outcomes[row] == Outcome.TIMED_OUT
        assert capture.records.reason[row].startswith("stalled: no byte on any stream for 0.5 s")
    assert capture.records.reason[-1].startswith("not sent: stalled")
    assert load.read_records(tmp_path / "records.npz").reason == capture.records.reason


def test_sending_more_requests_does_not_put_a_stall_off(tmp_path: Path) -> None:
    with FakeServer(Behaviour(fault="deaf")) as server:
        what = planned(160, Load(kind="request_rate", value=40.0))
        capture = drive(server, tmp_path, what, stall_timeout_s=0.5)
    assert capture.end == "stalled"
    assert (capture.records.sent_ns == NEVER).any()


def test_one_hanging_request_beside_others_is_no_stall_but_a_timeout(tmp_path: Path) -> None:
    with FakeServer(Behaviour(fault="deaf", fault_until=1, gap_s=0.1)) as server:
        capture = drive(server, tmp_path, planned(4), stall_timeout_s=1.5, request_timeout_s=2.5)
    assert capture.end == "complete"
    assert sorted(capture.records.outcome.tolist()) == [Outcome.OK] * 3 + [Outcome.TIMED_OUT]
    assert set(capture.records.reason) == {"", "no end of the answer within 2.5 s"}


@pytest.mark.parametrize("how", [Load(kind="concurrency", value=2), Load(kind="request_rate", value=8.0)])
def test_a_failed_request_decides_the_run_and_the_rest_is_not_sent(how: Load, tmp_path: Path) -> None:
    with FakeServer(Behaviour(fault="status:500", fault_until=1, first_token_s=0.4)) as server:
        capture = drive(server, tmp_path, planned(400, how))
    records = capture.records
    assert capture.end == "failed"
    assert records.reason[0] == "HTTP 500: fake trouble 500"
    assert records.failed.tolist() == [True] + [False] * 399
    assert records.ok.any()
    assert len(server.seen) < 100
    assert records.reason[-1] == "not sent: an earlier request failed"
    cut = (records.sent_ns != NEVER) & (records.outcome == Outcome.ABANDONED)
    assert all(records.reason[i].startswith("an earlier request failed, after ") for i in cut.nonzero()[0])


def test_a_server_that_only_pings_is_bounded_by_the_request_timeout(tmp_path: Path) -> None:
    with FakeServer(Behaviour(fault="ping")) as server:
        capture = drive(server, tmp_path, planned(2), stall_timeout_s=0.5, request_timeout_s=1.5)
    assert capture.end == "complete"
    assert set(capture.records.reason) == {"no end of the answer within 1.5 s, after 0 chunks"}


def test_the_engine_dies_while_requests_wait(tmp_path: Path) -> None:
    with FakeServer(Behaviour(fault="deaf")) as server:
        capture = drive(server, tmp_path, alive=lambda: not server.seen)
    assert capture.end == "died"
    assert capture.records.reason[0] == "the engine's process ended"
    assert capture.records.reason[-1] == "not sent: the engine's process ended"


def test_a_death_that_shows_only_after_its_sockets_closed_is_still_a_death(tmp_path: Path) -> None:
    looks = iter([True] * 4)
    with FakeServer(Behaviour(fault="reset:1")) as server:
        capture = drive(server, tmp_path, alive=lambda: next(looks, False))
    assert capture.end == "died"


def test_a_real_process_that_dies_mid_stream_is_a_death(tmp_path: Path) -> None:
    script = [sys.executable, "tests/fake_server.py", "--fault", "die:3", "--fault-from", "3"]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        server = FakeServer(port=int(url.rpartition(":")[2]))
        capture = drive(server, tmp_path, alive=lambda: process.poll() is None)
    assert capture.end == "died"
    assert capture.records.outcome.tolist()[:2] == [Outcome.OK] * 2
    assert Outcome.OK not in capture.records.outcome.tolist()[4:]


def test_an_interrupt_stops_the_workers_and_keeps_the_records(tmp_path: Path) -> None:
    def interrupt(progress: load.Progress) -> None:
        if progress.done >= 3:
            raise KeyboardInterrupt

    with FakeServer(Behaviour(fault="deaf", fault_from=3)) as server, pytest.raises(KeyboardInterrupt):
        drive(server, tmp_path, progress=interrupt)
    records = load.read_records(tmp_path / "records.npz")
    assert records.reason[:3] == ("", "", "")
    assert "the run was interrupted" in records.reason[3]


@pytest.fixture
def fleets(monkeypatch: pytest.MonkeyPatch) -> list[Fleet]:
    """The fleets that are started while the test runs."""
    started: list[Fleet] = []
    init = Fleet.__init__

    def remember(fleet: Fleet, *args: Any) -> None:
        started.append(fleet)
        init(fleet, *args)

    monkeypatch.setattr(Fleet, "__init__", remember)
    return started


def test_a_crashed_worker_is_our_fault_and_the_others_rows_are_kept(tmp_path: Path, fleets: list[Fleet]) -> None:
    def kill(progress: load.Progress) -> None:
        if progress.done:
            fleets[0].workers[1].process.kill()

    with (
        FakeServer(Behaviour(gap_s=0.02)) as server,
        pytest.raises(ClientError, match="exit code -9"),
    ):
        drive(server, tmp_path, planned(40), progress=kill, workers=2)
    reasons = load.read_records(tmp_path / "records.npz").reason
    assert reasons[0] == ""
    assert "worker was killed" in reasons[1]


@pytest.fixture
def idle_fleet(tmp_path: Path) -> Iterator[Fleet]:
    """One worker, ready and waiting."""
    with FakeServer() as server:
        endpoint = Endpoint(url=server.url, model="fake")
        jobs = split(planned(), endpoint, tmp_path, workers=1, request_timeout_s=60)
        with Fleet(jobs, tmp_path) as fleet:
            fleet.wait_until_ready()
            yield fleet


def test_a_worker_that_does_not_answer_is_killed(idle_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_llmperf.load.fleet.SAVE_TIMEOUT_S", 0)
    monkeypatch.setattr("pytest_llmperf.load.fleet.EXIT_TIMEOUT_S", 0)
    (worker,) = idle_fleet.workers
    worker.process.send_signal(signal.SIGSTOP)
    idle_fleet.stop(wire.Stop(Outcome.FAILED, "enough"))
    assert worker.process.wait(10) == -signal.SIGKILL


def test_a_worker_leaves_when_its_driver_is_gone(idle_fleet: Fleet) -> None:
    (worker,) = idle_fleet.workers
    assert worker.process.stdin is not None
    worker.process.stdin.close()  # what the kernel does for a driver that was killed
    assert worker.process.wait(10) == 1


@pytest.mark.parametrize("how", [Load(kind="burst"), Load(kind="concurrency", value=80)])
def test_more_streams_than_files_is_said_before_anything_is_sent(
    how: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    with FakeServer() as server, pytest.raises(UsageError, match=r"need 112 open files each, .* may have 64"):
        drive(server, tmp_path, planned(80, how), workers=1)
    assert server.seen == []


def test_a_worker_does_not_load_numpy() -> None:
    script = "import sys, pytest_llmperf.load.worker; print('numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "False"
