from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.plan import Plan
from pytest_llmperf.model.request_fields import RequestFields
from pytest_llmperf.model.suite import Load, Workload
from pytest_llmperf.workload import plan
from pytest_llmperf.workload.prompts import distinct_prompts
from pytest_llmperf.workload.words import WORDS

WORKLOAD = Workload(name="w", kind="words", requests=32, input_tokens=64, output_tokens=128)
CLOSED = Load(kind="concurrency", value=4)
MADE = plan(WORKLOAD, CLOSED, seed=1, model_id="tiny")


def bodies(made: Plan) -> list[dict[str, object]]:
    return [json.loads(request.body) for request in made.requests]


def test_words_are_distinct_and_plain() -> None:
    assert len(set(WORDS)) == len(WORDS) >= 100
    assert all(word.isascii() and word.islower() and word.isalpha() for word in WORDS)


def test_a_completions_body() -> None:
    made = plan(WORKLOAD, CLOSED, seed=1, model_id="tiny")
    body = bodies(made)[0]
    prompt = body.pop("prompt")
    assert body == {
        "model": "tiny",
        "max_tokens": 128,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
    }
    assert len(str(prompt).split()) == made.requests[0].input_tokens == 64
    assert made.requests[0].output_tokens == 128


@pytest.mark.parametrize(
    ("fields", "added", "missing"),
    [
        (RequestFields(stream_options=False), {}, {"stream_options"}),
        (RequestFields(ignore_eos=False), {}, {"ignore_eos"}),
        (
            RequestFields(continuous_usage_stats=True),
            {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
            set(),
        ),
        (RequestFields(return_token_ids=True), {"return_token_ids": True}, set()),
    ],
)
def test_a_field_that_not_every_server_takes_is_sent_as_told(
    fields: RequestFields, added: dict[str, object], missing: set[str]
) -> None:
    (usual, *_), (told, *_) = bodies(MADE), bodies(plan(WORKLOAD, CLOSED, seed=1, model_id="tiny", fields=fields))
    assert told == {key: value for key, value in {**usual, **added}.items() if key not in missing}


def test_a_chat_body_has_a_message_and_an_input_length_that_only_the_engine_knows() -> None:
    made = plan(replace(WORKLOAD, api="chat", output="natural"), CLOSED, seed=1, model_id="tiny")
    body = bodies(made)[0]
    assert [message["role"] for message in body["messages"]] == ["user"]  # type: ignore[attr-defined]
    assert "ignore_eos" not in body
    assert made.requests[0].input_tokens is None


def test_the_same_plan_in_another_process() -> None:
    script = f"""
from pytest_llmperf.model.suite import Load, Workload
from pytest_llmperf.workload import plan
print(plan({WORKLOAD!r}, {CLOSED!r}, seed=7, model_id="tiny").digest)
"""
    other = subprocess.check_output([sys.executable, "-c", script], text=True, env={"PYTHONHASHSEED": "123"}).strip()
    assert other == plan(WORKLOAD, CLOSED, seed=7, model_id="tiny").digest


def test_what_a_seed_means_never_changes() -> None:
    assert distinct_prompts([4] * 2, Random("seed")) == ["at were any your", "a word just made"]


@pytest.mark.parametrize(
    "other",
    [
        plan(WORKLOAD, CLOSED, seed=2, model_id="tiny"),
        plan(replace(WORKLOAD, requests=8), CLOSED, seed=1, model_id="tiny"),
        plan(WORKLOAD, Load(kind="burst"), seed=1, model_id="tiny"),
    ],
    ids=["seed", "warm-up", "load"],
)
def test_prompts_are_never_shared(other: Plan) -> None:
    mine = {str(body["prompt"]) for body in bodies(plan(WORKLOAD, CLOSED, seed=1, model_id="tiny"))}
    assert len(mine) == 32
    assert mine.isdisjoint(str(body["prompt"]) for body in bodies(other))


def test_a_renamed_workload_asks_the_same() -> None:
    renamed = replace(WORKLOAD, name="other")
    assert plan(renamed, CLOSED, seed=1, model_id="t").digest == plan(WORKLOAD, CLOSED, seed=1, model_id="t").digest


@given(count=st.integers(1, 300), words=st.integers(1, 4), seed=st.integers())
def test_prompts_are_distinct_and_of_exact_length(count: int, words: int, seed: int) -> None:
    if count > len(WORDS) ** words:
        with pytest.raises(UsageError, match="different prompts"):
            distinct_prompts([words] * count, Random(seed))
        return
    prompts = distinct_prompts([words] * count, Random(seed))
    assert len(set(prompts)) == len(prompts) == count
    assert all(len(prompt.split(" ")) == words and set(prompt.split(" ")) <= set(WORDS) for prompt in prompts)


@pytest.mark.parametrize(
    ("load", "times"),
    [(CLOSED, {None}), (Load(kind="burst"), {0})],
)
def test_send_times(load: Load, times: set[int | None]) -> None:
    assert {request.at_ns for request in plan(WORKLOAD, load, seed=1, model_id="t").requests} == times


@pytest.mark.parametrize(
    ("workload", "load", "message"),
    [
        (WORKLOAD, Load(kind="request_rate"), "request_rate: None"),
        (WORKLOAD, Load(kind="request_rate", value=1e-4), "request_rate: 0.0001: 32 requests take 320000 s"),
        (WORKLOAD, Load(kind="request_rate", value=1e-300), "request_rate: 1e-300: 32 requests take"),
        (WORKLOAD, Load(kind="request_rate", value=5e-324), "request_rate: 4.94066e-324: 32 requests take inf s"),
        (WORKLOAD, Load(kind="concurrency", value=0), "concurrency: 0"),
        (replace(WORKLOAD, requests=0), CLOSED, "requests: 0"),
        (replace(WORKLOAD, input_tokens=0), CLOSED, "input_tokens: 0"),
    ],
)
def test_what_makes_no_sense_is_an_error(workload: Workload, load: Load, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan(workload, load, seed=1, model_id="t")


def test_the_digest_is_of_every_byte_of_every_body_in_order() -> None:
    total = hashlib.sha256()
    for request in MADE.requests:
        total.update(len(request.body).to_bytes(8, "big") + request.body)
    assert MADE.digest == f"sha256:{total.hexdigest()}"
    first, second, *rest = MADE.requests
    longer = replace(second, body=second.body + b" ")
    moved = replace(first, body=first.body + second.body[:1]), replace(second, body=second.body[1:])
    others = [(second, first, *rest), (first, longer, *rest), (first, second), (*moved, *rest)]
    assert len({MADE.digest, *(replace(MADE, requests=requests).digest for requests in others)}) == 5
