"""Multi-turn chats against a server that remembers what it was asked."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.model.outcome import Outcome
from pytest_llmperf.model.suite import Load
from tests.fake_server import Behaviour, FakeServer
from tests.unit.load.driving import TOKENS, drive, planned

ANSWER = "".join(f" w{n}" for n in range(TOKENS))


def chats(requests: int, turns: int, load: Load) -> Any:
    return planned(requests, load, api="chat", turns=turns)


def said(server: FakeServer) -> list[list[dict[str, str]]]:
    return [seen.json["messages"] for seen in server.seen]


def closed(value: float) -> Load:
    return Load(kind="concurrency", value=value)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("load", [closed(2), Load(kind="burst"), Load(kind="request_rate", value=40.0)], ids=str)
def test_each_turn_repeats_what_was_said_before_it(load: Load, workers: int, tmp_path: Path) -> None:
    with FakeServer() as server:
        capture = drive(server, tmp_path, chats(8, 3, load), workers=workers)
    assert capture.records.ok.all()
    by_start = defaultdict(list)
    for messages in said(server):
        by_start[messages[0]["content"]].append(messages)
    assert sorted(map(len, by_start.values())) == [2, 3, 3], "8 requests are two conversations of 3 and one of 2"
    for turns in by_start.values():
        for number, messages in enumerate(turns):
            assert [message["role"] for message in messages] == ["user", "assistant"] * number + ["user"]
            assert all(message["content"] == ANSWER for message in messages[1::2])
            assert (
                messages[: 2 * number] == [*turns[number - 1], {"role": "assistant", "content": ANSWER}][: 2 * number]
            )
        assert len({messages[-1]["content"] for messages in turns}) == len(turns), "each turn says something new"


def test_the_turns_of_a_conversation_wait_for_one_another(tmp_path: Path) -> None:
    with FakeServer(Behaviour(first_token_s=0.05)) as server:
        capture = drive(server, tmp_path, chats(6, 3, Load(kind="burst")))
    assert server.max_in_flight == 2
    sent, done = capture.records.sent_ns.reshape(2, 3), capture.records.done_ns.reshape(2, 3)
    assert (sent[:, 1:] > done[:, :-1]).all()
    assert (capture.records.scheduled_ns.reshape(2, 3)[:, 1:] == -1).all(), "a later turn has no time of its own"


def test_concurrency_is_of_conversations(tmp_path: Path) -> None:
    with FakeServer(Behaviour(first_token_s=0.02)) as server:
        capture = drive(server, tmp_path, chats(12, 2, closed(3)), workers=2)
    assert server.max_in_flight == capture.client.max_in_flight == 3


@pytest.mark.parametrize("fault", ["status:503", "close:2", "error:1"])
def test_a_conversation_ends_with_its_first_failure(fault: str, tmp_path: Path) -> None:
    with FakeServer(Behaviour(fault=fault, fault_from=1, fault_until=2)) as server:
        capture = drive(server, tmp_path, chats(6, 3, closed(1)))
    assert len(server.seen) == 5
    outcomes, reasons = capture.records.outcome.tolist(), capture.records.reason
    assert outcomes == [Outcome.OK, Outcome.FAILED, Outcome.FAILED, Outcome.OK, Outcome.OK, Outcome.OK]
    assert reasons[2] == "not sent: the turn before it has no answer"


def test_requests_of_one_turn_are_sent_as_they_were_planned(tmp_path: Path) -> None:
    what = planned(4, closed(2))
    with FakeServer() as server:
        drive(server, tmp_path, what)
    assert {seen.body for seen in server.seen} == {request.body for request in what.requests}
