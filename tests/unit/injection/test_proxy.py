"""The proxy between the real client and a fake server, over real sockets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_llmperf import load
from pytest_llmperf.errors import LlmperfError, UsageError
from pytest_llmperf.injection import Proxy
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.injection import Injection, parse
from pytest_llmperf.model.outcome import Outcome
from pytest_llmperf.model.records import Records
from tests.fake_server import Behaviour, FakeServer
from tests.unit.load.driving import planned

STEADY = Behaviour(first_token_s=0.02, gap_s=0.005)


def drive(url: str, folder: Path, requests: int = 8) -> Records:
    endpoint = Endpoint(url=url, model="fake", api_key_env=None)
    return load.drive(
        planned(requests), endpoint, folder, stall_timeout_s=2, request_timeout_s=20, alive=lambda: True
    ).records


def ttft_ns(records: Records) -> float:
    return float((records.first_token_ns - records.sent_ns).mean())


def decode_ns(records: Records) -> float:
    return float((records.last_token_ns - records.first_token_ns).mean())


@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_what_is_only_watched_is_not_changed(framing: str, tmp_path: Path) -> None:
    with FakeServer(Behaviour(framing=framing)) as server:
        direct = drive(server.url, tmp_path / "direct")
        with Proxy(server.url) as proxy:
            through = drive(proxy.url, tmp_path / "through")
    assert through.ok.all()
    assert through.text_sha256 == direct.text_sha256
    assert through.output_tokens.tolist() == direct.output_tokens.tolist()
    assert [seen.body for seen in server.seen[:8]] == [seen.body for seen in server.seen[8:]]
    assert {seen.headers["host"] for seen in server.seen} == {server.url.removeprefix("http://")}


@pytest.mark.parametrize("text", ["ttft=+300%", "tpot=+300%", "e2el=+300%", "throughput=-75%"])
def test_a_loss_of_at_least_the_asked_size_is_measured(text: str, tmp_path: Path) -> None:
    injection = parse(text)
    with FakeServer(STEADY) as server, Proxy(server.url) as proxy:
        before = drive(proxy.url, tmp_path / "before")
        proxy.inject(injection)
        after = drive(proxy.url, tmp_path / "after")
    assert after.ok.all()
    assert after.text_sha256 == before.text_sha256
    # A loss has no upper bound on a busy machine, so only what must not be slower is compared roughly.
    if injection.kind in {"ttft", "e2el"}:
        assert ttft_ns(after) >= 2 * ttft_ns(before)
    if injection.kind in {"tpot", "e2el"}:
        assert decode_ns(after) >= 2 * decode_ns(before)
    if injection.kind == "throughput":
        took = [float(np.max(records.last_token_ns) - np.min(records.sent_ns)) for records in (before, after)]
        assert took[1] >= 2 * took[0]


@pytest.mark.parametrize(
    ("kind", "outcome", "reason"),
    [
        ("drop", Outcome.FAILED, "closed mid-stream"),
        ("error", Outcome.FAILED, "injected by llmperf"),
        ("stall", Outcome.TIMED_OUT, "stalled"),
    ],
)
@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_a_fault_strikes_after_a_few_events(
    kind: str, outcome: Outcome, reason: str, framing: str, tmp_path: Path
) -> None:
    with FakeServer(Behaviour(framing=framing, gap_s=0.002)) as server, Proxy(server.url) as proxy:
        proxy.inject(parse(kind))
        records = drive(proxy.url, tmp_path)
    assert outcome in records.outcome.tolist()
    assert not records.ok.any()
    assert any(reason in text for text in records.reason), records.reason
    assert 1 <= int(np.diff(records.chunk_start).max()) <= 3


def test_a_share_of_nothing_is_refused() -> None:
    with FakeServer() as server, Proxy(server.url) as proxy, pytest.raises(UsageError, match="nothing can be injected"):
        proxy.inject(Injection("ttft", 0.2))


def test_a_dead_endpoint_is_the_clients_to_tell(tmp_path: Path) -> None:
    with FakeServer() as server:
        url = server.url
    with Proxy(url) as proxy:
        records = drive(proxy.url, tmp_path, requests=2)
    assert not records.ok.any()


def test_it_may_be_closed_again() -> None:
    with FakeServer() as server:
        proxy = Proxy(server.url)
        with proxy:
            pass
        proxy.close()


def test_a_proxy_that_cannot_listen_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object) -> None:
        raise OSError("no sockets left")

    monkeypatch.setattr(Proxy, "_listen", refused)
    with pytest.raises(LlmperfError, match="did not start: no sockets left"), Proxy("http://127.0.0.1:1"):
        pass
