"""How many tokens came, and with which chunk: from usage or token ids, or unknown; never from the number of chunks."""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.load.answer import Answer, read_answer
from pytest_llmperf.model.token_source import TokenSource
from tests.unit.load.responses import RECORDED, counted

MTP = RECORDED["vllm-0.32.0_mtp_completions"]
USAGE, IDS, NONE = TokenSource.USAGE, TokenSource.TOKEN_IDS, TokenSource.NONE


def read(*chunks: dict[str, Any]) -> Answer:
    return read_answer(b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks))


def chunk(text: str = "a", *, total: int | None = None, ids: list[int] | None = None) -> dict[str, Any]:
    return {
        "choices": [{"text": text, "finish_reason": None, "token_ids": ids}],
        "usage": None if total is None else {"completion_tokens": total},
    }


def end(total: int) -> dict[str, Any]:
    return {"choices": [], "usage": {"completion_tokens": total}}


def counts(answer: Answer) -> tuple[int, TokenSource, tuple[int, ...], TokenSource]:
    return answer.output_tokens, answer.output_source, answer.chunk_tokens, answer.chunk_source


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([chunk(), chunk(), end(5)], (5, USAGE, (), NONE)),
        ([chunk(total=2), chunk(total=5), end(5)], (5, USAGE, (2, 3), USAGE)),
        ([chunk(total=2), chunk(total=5)], (5, USAGE, (2, 3), USAGE)),
        ([chunk(ids=[7, 8]), chunk(ids=[9]), end(3)], (3, USAGE, (2, 1), IDS)),
        ([chunk(ids=[7, 8]), chunk(ids=[9])], (3, IDS, (2, 1), IDS)),
        ([chunk(ids=[7, 8], total=2), chunk(ids=[9], total=3)], (3, USAGE, (2, 1), IDS)),
        ([chunk(), chunk()], (-1, NONE, (), NONE)),
        ([chunk(total=4)], (4, USAGE, (4,), USAGE)),
    ],
)
def test_who_counted(chunks: list[dict[str, Any]], expected: tuple[Any, ...]) -> None:
    assert counts(read(*chunks)) == expected


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(total=2), chunk(), end(5)],  # one chunk does not say
        [chunk(), chunk(total=5), end(5)],
        [chunk(total=2), chunk(total=4), end(5)],  # they do not add up
        [chunk(ids=[1]), chunk(ids=[2]), end(5)],
        [chunk(total=0), chunk(total=0), chunk(total=5), end(5)],  # text without a token: zeros in place of counts
        [chunk(ids=[]), chunk(ids=[]), end(5)],
        [chunk(total=3), chunk(total=2), end(5)],  # it fell
        [chunk(total=1), chunk(total=40_000), end(40_000)],  # more than a column holds
    ],
)
def test_counts_that_are_not_whole_are_unknown_and_the_total_stands(chunks: list[dict[str, Any]]) -> None:
    answer = read(*chunks)
    assert (answer.chunk_tokens, answer.chunk_source) == ((), NONE)
    assert answer.output_tokens == chunks[-1]["usage"]["completion_tokens"]


def test_zero_in_place_of_unknown_is_unknown() -> None:
    assert counts(read(chunk(), chunk(), end(0))) == (-1, NONE, (), NONE)


def test_a_role_without_usage_does_not_spoil_the_counts() -> None:
    role = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
    answer = read(role, chunk(total=2), chunk(total=3), end(3))
    assert answer.chunk_tokens == (2, 1)


def test_a_token_without_text_counts_where_it_came() -> None:
    answer = read(chunk(total=1), chunk("", total=3), chunk(total=4), end(4))
    assert answer.chunk_tokens == (1, 2, 1)


def test_recorded_usage_in_every_chunk_gives_the_tokens_of_each() -> None:
    plain = read_answer(RECORDED["sglang-0.5.16_completions"])
    mtp = read_answer(RECORDED["sglang-0.5.16_mtp_completions"])
    assert counts(plain) == (6, USAGE, (1,) * 6, USAGE)
    assert counts(mtp) == (6, USAGE, (1, 2, 2, 1), USAGE)


def test_recorded_mtp_without_counts_has_unknown_ones() -> None:
    answer = read_answer(MTP)
    assert (len(answer.chunk_ends), counts(answer)) == (105, (256, USAGE, (), NONE))


@pytest.mark.parametrize(("by", "source"), [("usage", USAGE), ("token_ids", IDS)])
def test_recorded_mtp_with_counts_has_exact_ones(by: str, source: TokenSource) -> None:
    stream, words = counted(MTP, by)
    answer = read_answer(stream)
    assert counts(answer) == (256, USAGE, tuple(words), source)
    assert max(words) == 4


@given(st.lists(st.integers(1, 8), min_size=1, max_size=30), st.booleans())
def test_counts_add_up(tokens: list[int], by_ids: bool) -> None:
    totals = accumulate(tokens)
    chunks = [chunk(ids=[0] * n) if by_ids else chunk(total=total) for n, total in zip(tokens, totals, strict=True)]
    answer = read(*chunks, end(sum(tokens)))
    assert answer.chunk_tokens == tuple(tokens)
