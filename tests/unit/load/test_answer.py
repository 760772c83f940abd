from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_llmperf.load.answer import error_message, read_answer
from pytest_llmperf.model.token_source import TokenSource

STREAMS = Path(__file__).parents[2] / "data" / "streams"


def stream(*chunks: dict[str, Any], done: bool = True) -> bytes:
    events = [b"data: " + json.dumps(chunk).encode() for chunk in chunks] + [b"data: [DONE]"] * done
    return b"".join(event + b"\n\n" for event in events)


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": value, "finish_reason": None}], **more}


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


@pytest.mark.parametrize(
    ("name", "chunks", "tokens", "prompt", "cached", "done"),
    [
        ("vllm-0.32.0_completions", 32, 32, 67, -1, True),
        ("vllm-0.32.0_chat", 16, 16, 81, -1, True),
        ("vllm-0.32.0_mtp_completions", 105, 256, 67, -1, True),
        ("xllamacpp-2026.10_completions", 64, 64, 186, 0, True),
        ("xllamacpp-2026.10_chat", 16, 16, 203, 0, True),
        ("transformers_chat", 64, 64, 81, -1, False),
        ("sglang-0.5.16_completions", 6, 6, 2, -1, True),
        ("sglang-0.5.16_mtp_completions", 4, 6, 2, -1, True),
    ],
)
def test_recorded_streams(name: str, chunks: int, tokens: int, prompt: int, cached: int, done: bool) -> None:
    answer = read_answer((STREAMS / f"{name}.sse").read_bytes())
    assert (len(answer.chunk_ends), answer.output_tokens, answer.input_tokens, answer.cached_tokens) == (
        chunks, tokens, prompt, cached,
    )  # fmt: skip
    assert (answer.finish_reason, answer.done, answer.error) == ("length", done, "")
    assert answer.output_source is TokenSource.USAGE


def test_recorded_error_inside_http_200() -> None:
    answer = read_answer((STREAMS / "vllm-0.32.0_error_inside_200.sse").read_bytes())
    assert answer.error.startswith("error event: EngineCore encountered an issue")
    assert not answer.chunk_ends


@pytest.mark.parametrize(
    ("chunk", "counts"),
    [
        (delta(role="assistant", content=""), False),
        (delta(role="assistant", content=None), False),
        (delta(role="assistant", content="a"), True),
        (delta(content="a"), True),
        (delta(reasoning="a"), True),
        (delta(reasoning_content="a"), True),
        (delta(), False),
        (text("a"), True),
        (text(""), True),  # a special token
        ({"choices": [{"text": "", "finish_reason": "length"}]}, False),
        ({"choices": [{"text": "", "finish_reason": "stop", "token_ids": [2]}]}, True),
        ({"choices": [{"text": "", "finish_reason": "stop"}], "usage": {"completion_tokens": 1}}, True),
        ({"choices": [{"text": "", "finish_reason": None}], "usage": {"completion_tokens": 0}}, False),
        (delta(content=""), True),  # a special token
        ({"choices": [{"delta": {"content": ""}, "finish_reason": "stop"}]}, False),
        (delta(content=None), False),
        (delta(tool_calls=[{"index": 0, "id": "call-1", "function": {"name": "now", "arguments": ""}}]), True),
        (delta(tool_calls=[{"index": 0, "function": {"arguments": "{}"}}]), True),
        (delta(tool_calls=[]), False),
        (delta(function_call={"name": "now"}), True),
        ({"choices": [], "usage": {"completion_tokens": 1}}, False),
        ({"choices": None}, False),
        ({}, False),
    ],
)
def test_which_chunk_bears_tokens(chunk: dict[str, Any], counts: bool) -> None:
    assert len(read_answer(stream(chunk)).chunk_ends) == counts


def test_a_chunk_ends_with_its_own_event() -> None:
    first, second = stream(text("a"), done=False), stream(text("b"), done=False)
    assert read_answer(first + b": ping\n\n" + second).chunk_ends == (len(first), len(first) + 8 + len(second))


def test_what_comes_under_another_name_than_a_chunk_is_no_mistake() -> None:
    named = b"event: ping\ndata: 12:30\n\n" + b'event: message\ndata: {"choices": [{"text": "a"}]}\n\n' + b"data: \n\n"
    answer = read_answer(named + stream(text("b")))
    assert (answer.text, answer.error, answer.done) == ("ab", "", True)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (b'error: {"code":500,"message":"slot gone","type":"server_error"}', "slot gone"),
        (b'error: {"error":{"message":"slot gone"}}', "slot gone"),
        (b"event: error\ndata: out of memory", "out of memory"),
        (b'event: error\ndata: {"message": "out of memory"}', "out of memory"),
    ],
)
def test_an_error_by_name(event: bytes, message: str) -> None:
    answer = read_answer(stream(text("a"), done=False) + event + b"\n\n" + stream(text("b")))
    assert (answer.error, answer.text) == (f"error event: {message}", "a")


def test_half_of_a_surrogate_pair_is_text() -> None:
    halves = b'data: {"choices": [{"text": "\\ud83d"}]}\n\ndata: {"choices": [{"text": "\\ude00"}]}\n\n'
    answer = read_answer(halves)
    assert (len(answer.chunk_ends), answer.error) == (2, "")
    assert answer.text_sha256


def test_reasoning_under_two_names_is_said_once() -> None:
    assert read_answer(stream(delta(reasoning="a", reasoning_content="a", content="b"))).text == "ab"


def test_a_tool_call_is_text() -> None:
    calls = [{"index": 0, "id": f"call-{n}", "function": {"name": "now", "arguments": '{"zone"'}} for n in (1, 2)]
    assert read_answer(stream(delta(tool_calls=calls[:1]))).text_sha256 == (
        read_answer(stream(delta(tool_calls=calls[1:]))).text_sha256
    )
    assert read_answer(stream(delta(tool_calls=calls[:1]))).text == 'now{"zone"'


def test_the_last_usage_counts_and_none_is_unknown() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 2}}
    answer = read_answer(stream(text("a", usage=usage), text("b", usage={**usage, "completion_tokens": 2})))
    assert (answer.input_tokens, answer.output_tokens, answer.cached_tokens) == (3, 2, 2)
    unknown = read_answer(stream(text("a", usage=None)))
    assert (unknown.input_tokens, unknown.output_tokens, unknown.cached_tokens) == (-1, -1, -1)


def test_the_digest_is_of_all_text() -> None:
    one, two = read_answer(stream(text("ab"))), read_answer(stream(text("a"), text("b")))
    assert one.text_sha256 == two.text_sha256
    assert one.text_sha256 != read_answer(stream(text("ba"))).text_sha256
    assert read_answer(stream()).text_sha256 == ""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"error": {"message": "out of memory", "code": 500}}, "out of memory"),
        ({"error": "plain"}, "plain"),
        ({"object": "error", "message": "older vLLM"}, "older vLLM"),
        ({"error": {"code": 7}}, '{"code":7}'),
    ],
)
def test_an_error_event_ends_the_reading(data: dict[str, Any], message: str) -> None:
    answer = read_answer(stream(text("a"), data, text("b")))
    assert (answer.error, answer.text) == (f"error event: {message}", "a")


@pytest.mark.parametrize(
    "data",
    [
        b"{broken",
        b"[1]",
        b"1",
        b"\xff",
        b'{"choices": 1}',
        b'{"choices": [1]}',
        b'{"choices": [{"text": 1}]}',
        b'{"choices": {"a": 1}}',
    ],
)
def test_an_event_that_no_completion_has_is_an_error(data: bytes) -> None:
    answer = read_answer(stream(text("a"), done=False) + b"data: " + data + b"\n\n")
    assert answer.error.startswith("malformed event: ")
    assert answer.text == "a"


def test_a_usage_of_the_wrong_shape_is_unknown() -> None:
    assert read_answer(stream(text("a", usage="many"))).output_tokens == -1
    assert read_answer(stream(text("a", usage={"completion_tokens": "3"}))).output_tokens == -1


@pytest.mark.parametrize("value", [-5, -1, 2**53, 2**63, 8.0, "8", True, [8]])
@pytest.mark.parametrize("key", ["completion_tokens", "prompt_tokens", "cached_tokens"])
def test_a_count_that_cannot_be_is_an_error_and_unknown(key: str, value: object) -> None:
    usage = {"prompt_tokens_details": {key: value}} if key == "cached_tokens" else {key: value}
    answer = read_answer(stream(text("a"), {"choices": [], "usage": usage}))
    assert answer.error == f"usage says {key} = {value!r}"
    assert (answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.text) == (-1, -1, -1, "a")


def test_what_comes_after_done_is_not_read() -> None:
    whole = stream(text("a"), {"choices": [], "usage": {"completion_tokens": 1}})
    late = stream(text("b"), {"choices": [], "usage": {"completion_tokens": 9}})
    assert read_answer(whole + late) == read_answer(whole)


def test_error_body() -> None:
    assert error_message(b'{"error": {"message": "no such model"}}') == "no such model"
    assert error_message(b"<html>\n  Bad   gateway</html>") == "<html> Bad gateway</html>"
    assert len(error_message(b"x" * 10_000)) < 300


STRANGE = [
    b"data: {broken\n\n",
    b'data: {"error": {"message": "ill"}}\n\n',
    b"event: ping\ndata: 1\n\n",
    b"data: [DONE]\n\n",
    b"data: \n\n",
    b'data: {"choices": [{"text": "a"}]},{"choices": []}\n\n',
    b'data: {"choices": [{"text": "\\ud83d"}]}\n\n',
    b'data: {"choices": [{"text": "b", "logprobs": "error"}]}\n\n',
    b'data: {"choices": [{"text": "b"}], "usage": {"completion_tokens": -3}}\n\n',
]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([*STRANGE, *(stream(text(word), done=False) for word in "abc")]), max_size=9))
def test_parsing_events_together_or_one_by_one_is_the_same(monkeypatch: pytest.MonkeyPatch, parts: list[bytes]) -> None:
    together = read_answer(b"".join(parts))
    monkeypatch.setattr("pytest_llmperf.load.answer._BATCH", 1)
    one_by_one = read_answer(b"".join(parts))
    monkeypatch.undo()
    if together.error:  # how far a broken stream was read does not matter
        assert one_by_one.error == together.error
    else:
        assert one_by_one == together
