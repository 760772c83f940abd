"""The client against a real server in this process, with real workers: what it does when all is well."""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from pytest_llmperf import load
from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.records import NEVER, TokenSource
from pytest_llmperf.model.request_fields import RequestFields
from pytest_llmperf.model.suite import DataFile, Load, Ramp, Trace
from pytest_llmperf.workload import Arrival, Material
from tests.fake_server import Behaviour, FakeServer
from tests.tls import self_signed
from tests.unit.load.driving import TOKENS, drive, planned


@pytest.mark.parametrize("api", ["completions", "chat"])
@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_every_request_is_sent_once_and_read_whole(api: str, framing: str, tmp_path: Path) -> None:
    what = planned(api=api)
    with FakeServer(Behaviour(framing=framing, first_token_s=0.02, gap_s=0.002)) as server:
        capture = drive(server, tmp_path, what)
    records = capture.records
    assert capture.end == "complete"
    assert records.reason == ("",) * 6
    assert sorted(seen.body for seen in server.seen) == sorted(request.body for request in what.requests)
    assert records.output_tokens.tolist() == [TOKENS] * 6
    assert records.input_tokens.tolist() == [8] * 6
    assert np.diff(records.chunk_start).tolist() == [TOKENS] * 6
    assert server.max_in_flight == capture.client.max_in_flight == 2
    order = [records.sent_ns, records.first_token_ns, records.last_token_ns, records.done_ns]
    assert all((early <= late).all() for early, late in itertools.pairwise(order))
    assert (records.first_token_ns - records.sent_ns >= 20_000_000).all()
    assert capture.window_ns[0] <= records.sent_ns.min()
    assert capture.window_ns[1] == records.done_ns.max()


def test_workers_keep_to_the_cores_that_are_theirs(tmp_path: Path) -> None:
    last = max(os.sched_getaffinity(0))
    seen: set[tuple[int, ...]] = set()

    def alive() -> bool:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if str(tmp_path / "worker-").encode() in path.read_bytes():
                    seen.add(tuple(os.sched_getaffinity(int(path.parent.name))))
        return True

    with FakeServer(Behaviour(gap_s=0.02)) as server:
        client = drive(server, tmp_path, alive=alive, cores=(last,)).client
        assert seen == {(last,)}
        assert client.cores == (last,)
        assert drive(server, tmp_path, workers=2, cores=(last,)).client.cores == (last, last)
        assert drive(server, tmp_path).client.cores == ()


def test_the_stream_is_understood_in_whatever_pieces_it_comes(tmp_path: Path) -> None:
    with FakeServer(Behaviour(piece_bytes=37, crlf=True, tokens_per_chunk=3)) as server:
        records = drive(server, tmp_path).records
    assert records.reason == ("",) * 6
    assert np.diff(records.chunk_start).tolist() == [3] * 6


def test_connections_are_opened_ahead_and_kept(tmp_path: Path) -> None:
    with FakeServer() as server:
        drive(server, tmp_path)
    assert server.connections == 2


def test_a_kept_connection_that_the_server_had_closed_is_replaced(tmp_path: Path) -> None:
    with FakeServer(Behaviour(one_request_per_connection=True)) as server:
        capture = drive(server, tmp_path)
    assert capture.records.reason == ("",) * 6
    assert len(server.seen) == 6


def test_what_is_saved_is_what_is_returned(tmp_path: Path) -> None:
    with FakeServer() as server:
        capture = drive(server, tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["records.npz"]
    saved = load.read_records(tmp_path / "records.npz")
    np.testing.assert_array_equal(saved.chunk_ns, capture.records.chunk_ns)
    assert saved.text_sha256 == capture.records.text_sha256


def test_two_workers_share_the_load(tmp_path: Path) -> None:
    with FakeServer(Behaviour(first_token_s=0.3)) as server:
        capture = drive(server, tmp_path, planned(9, Load(kind="concurrency", value=5)), workers=2)
    assert capture.client.workers == 2
    assert capture.records.reason == ("",) * 9
    assert server.max_in_flight == capture.client.max_in_flight == 5
    assert len({seen.body for seen in server.seen}) == 9


def test_a_burst_sends_everything_at_once(tmp_path: Path) -> None:
    with FakeServer(Behaviour(first_token_s=0.3)) as server:
        capture = drive(server, tmp_path, planned(12, Load(kind="burst")))
    assert server.max_in_flight == 12
    assert server.connections == 12
    assert (capture.records.scheduled_ns == capture.window_ns[0]).all()


ARRIVALS = Material(arrivals=[Arrival(at_s=0.02 * i) for i in range(10)])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "how",
    [
        Load(kind="request_rate", value=50.0),
        Load(kind="request_rate", value=50.0, burstiness=0.3),
        Load(kind="ramp", ramp=Ramp(start=30, end=90)),
        Load(kind="trace", trace=Trace(data=DataFile(path="t", sha256="0"))),
    ],
    ids=str,
)
def test_an_open_loop_keeps_its_schedule(how: Load, workers: int, tmp_path: Path) -> None:
    what = planned(10, how, material=ARRIVALS)
    with FakeServer(Behaviour(first_token_s=0.4)) as server:  # slower than the arrivals: they do not wait for it
        capture = drive(server, tmp_path, what, workers=workers)
    due = np.array([request.at_ns for request in what.requests]) + capture.window_ns[0]
    assert capture.records.scheduled_ns.tolist() == due.tolist()
    assert (capture.records.sent_ns >= due).all()
    assert capture.client.schedule_lag_p99_ms is not None
    assert server.max_in_flight > 5


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_https(framing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, certificate = self_signed(tmp_path)
    with FakeServer(Behaviour(framing=framing, tokens_per_chunk=3), tls=context) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        records = drive(server, tmp_path / "trusted").records
        assert records.reason == ("",) * 6
        assert np.diff(records.chunk_start).tolist() == [3] * 6
        monkeypatch.delenv("SSL_CERT_FILE")
        (reason, *_) = drive(server, tmp_path / "unknown").records.reason
    assert "CERTIFICATE_VERIFY_FAILED" in reason


def test_progress_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[load.Progress] = []
    with FakeServer(Behaviour(gap_s=0.05)) as server:
        drive(server, tmp_path, progress=told.append)
    assert [progress.done for progress in told] == sorted(progress.done for progress in told)
    assert any(progress.in_flight == 2 for progress in told)
    assert (told[-1].done, told[-1].total, told[-1].failed, told[-1].in_flight) == (6, 6, 0, 0)
    assert told[-1].chunks >= 6 * TOKENS


def test_the_api_key_is_sent_and_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_KEY", "sk-very-secret")
    files: dict[str, bytes] = {}

    def look(_: load.Progress) -> None:
        files.update({str(file): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()})

    with FakeServer(Behaviour(gap_s=0.02, fault="status:401", fault_from=3)) as server:
        capture = drive(server, tmp_path, progress=look, api_key_env="FAKE_KEY")
    look(load.Progress(total=0, done=0, failed=0, in_flight=0, chunks=0, elapsed_s=0))
    assert capture.records.reason[3] == "HTTP 401: fake trouble 401 Bearer " + "*" * len("sk-very-secret")
    assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer sk-very-secret"}
    assert any(name.endswith(".job") for name in files)
    assert not [name for name, content in files.items() if b"secret" in content]


def test_a_missing_api_key_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="NO_SUCH_KEY"):
        drive(FakeServer(port=1), tmp_path, api_key_env="NO_SUCH_KEY")


def test_a_short_answer_is_fine_when_it_may_end_by_itself(tmp_path: Path) -> None:
    with FakeServer(Behaviour(fault="short:5")) as server:
        records = drive(server, tmp_path, planned(output="natural")).records
        assert all("ignore_eos" not in seen.json for seen in server.seen)
    assert records.reason == ("",) * 6
    assert records.output_tokens.tolist() == [5] * 6


def test_without_usage_the_number_of_tokens_is_unknown(tmp_path: Path) -> None:
    with FakeServer(Behaviour(usage=False)) as server:
        records = drive(server, tmp_path).records
    assert records.reason == ("",) * 6
    assert records.output_tokens.tolist() == [NEVER] * 6


def test_a_first_token_that_takes_long_is_measured(tmp_path: Path) -> None:
    with FakeServer(Behaviour(first_token_s=1.0)) as server:
        capture = drive(server, tmp_path, planned(2), stall_timeout_s=3)
    assert (capture.end, capture.records.reason) == ("complete", ("", ""))


@pytest.mark.parametrize(
    ("fields", "source"),
    [
        (RequestFields(), TokenSource.NONE),
        (RequestFields(continuous_usage_stats=True), TokenSource.USAGE),
        (RequestFields(return_token_ids=True), TokenSource.TOKEN_IDS),
    ],
)
def test_tokens_of_chunks_are_known_where_they_were_asked_for(
    fields: RequestFields, source: TokenSource, tmp_path: Path
) -> None:
    with FakeServer(Behaviour(tokens_per_chunk=3, counts=True)) as server:
        records = drive(server, tmp_path, planned(2, taken=fields)).records
    assert records.ok.all()
    assert records.chunk_source.tolist() == [source] * 2
    assert records.chunk_tokens.tolist() == ([3, 3, 2] * 2 if source else [-1] * 6)


def test_a_gateway_that_refuses_a_field_is_fine_without_it(tmp_path: Path) -> None:
    with FakeServer(Behaviour(refuses="ignore_eos")) as server:
        refused = drive(server, tmp_path / "usual").records
        taken = drive(server, tmp_path / "without", planned(taken=RequestFields(ignore_eos=False))).records
    assert set(refused.reason) == {"HTTP 400: fake trouble 400"}
    assert b"fake trouble" in (tmp_path / "usual" / "failed" / "request-0.http").read_bytes()
    assert taken.ok.all()
