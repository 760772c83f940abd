"""Chat as each engine streams it: one answer of four tokens, two of them thoughts, said in each one's own way."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_llmperf.load.answer import read_answer
from pytest_llmperf.load.job import JobRequest
from pytest_llmperf.load.row import read_row
from tests.unit.load.responses import received, until_close

SAID = [("hm", ""), (" so", ""), ("", "4"), ("", " 2")]


def stream(chunks: Iterable[dict[str, Any]], event: bytes = b"data: %s\n\n") -> bytes:
    return b"".join(event % json.dumps(chunk).encode() for chunk in chunks) + b"data: [DONE]\n\n"


def chunk(delta: dict[str, Any], ended: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, **({} if ended is None else {"finish_reason": ended})}], **more}


def usage(tokens: int) -> dict[str, Any]:
    return {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}


def told(tokens: int, *, counts: bool) -> dict[str, Any]:
    return {"usage": usage(tokens)} if counts else {}


def vllm(*, counts: bool) -> bytes:
    """``reasoning``; the finish reason comes with the last token."""
    chunks = [chunk({"role": "assistant", "content": ""})]
    for number, (thought, word) in enumerate(SAID, 1):
        delta = {"reasoning": thought} if thought else {"content": word}
        chunks.append(chunk(delta, "length" if number == 4 else None, **told(number, counts=counts)))
    return stream([*chunks, {"choices": [], "usage": usage(4)}])


def sglang(*, counts: bool) -> bytes:
    """Every key, also those that say nothing; the finish reason comes alone."""
    nothing = {"role": None, "content": None, "reasoning_content": None, "tool_calls": None}
    chunks = [chunk({**nothing, "role": "assistant", "content": ""})]
    for number, (thought, word) in enumerate(SAID, 1):
        delta = {**nothing, "reasoning_content": thought or None, "content": word or None}
        chunks.append(chunk(delta, **told(number, counts=counts)))
    end = chunk(nothing, "length", **told(4, counts=counts))
    return stream([*chunks, end, {"choices": [], "usage": usage(4)}])


def tensorrt_llm(*, counts: bool) -> bytes:
    """No key that says nothing, but an empty content beside a thought; a space before the role's empty line."""
    role = chunk({"role": "assistant"}, **told(0, counts=counts))
    chunks = []
    for number, (thought, word) in enumerate(SAID, 1):
        delta = {"content": word, "reasoning_content": thought}
        chunks.append(chunk(delta, "length" if number == 4 else None, **told(number, counts=counts)))
    return stream([role], b"data: %s \n\n").removesuffix(b"data: [DONE]\n\n") + stream(
        [*chunks, {"choices": [], "usage": usage(4)}]
    )


def llama_cpp(*, counts: bool) -> bytes:
    """A null content beside the role; no counts of chunks, even when asked for."""
    chunks = [chunk({"role": "assistant", "content": None}, finish_reason=None)]
    chunks += [chunk({"reasoning_content": thought} if thought else {"content": word}) for thought, word in SAID]
    return stream([*chunks, chunk({}, "length"), {"choices": [], "usage": usage(4)}])


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("dialect", [vllm, sglang, tensorrt_llm, llama_cpp], ids=lambda dialect: dialect.__name__)
def test_the_same_answer_is_read(dialect: Any, counts: bool) -> None:
    raw = dialect(counts=counts)
    answer = read_answer(raw)
    assert (answer.text, answer.finish_reason, answer.done, answer.error) == ("hm so4 2", "length", True, "")
    assert (len(answer.chunk_ends), answer.output_tokens, answer.input_tokens) == (4, 4, 5)
    assert answer.chunk_tokens == ((1, 1, 1, 1) if counts and dialect is not llama_cpp else ())


@pytest.mark.parametrize("dialect", [vllm, sglang, tensorrt_llm, llama_cpp], ids=lambda dialect: dialect.__name__)
def test_the_first_token_is_the_first_thought_and_the_last_one_a_word(dialect: Any) -> None:
    """Each event in a read of its own: neither a role, nor a finish reason, nor usage is a token."""
    body = dialect(counts=False)
    raw, brought = until_close(body)
    events = [*body.replace(b" \n\n", b"_\n\n").split(b"\n\n")][:-1]
    ends, total = [], 0
    for event in events:
        total += len(event) + 2
        ends.append(brought[total - 1])
    request = JobRequest(index=0, body="{}", at_ns=None, planned_input_tokens=-1, asked_tokens=4)
    row = read_row(request, received(raw, ends), exact_output=True)
    assert (row.reason, list(row.chunk_ns)) == ("", [2, 3, 4, 5])


def test_a_special_token_has_no_role_and_an_empty_content() -> None:
    for role in ({}, {"role": None}):
        assert len(read_answer(stream([chunk({**role, "content": ""})])).chunk_ends) == 1
    assert not read_answer(stream([chunk({"role": "assistant", "content": ""})])).chunk_ends
