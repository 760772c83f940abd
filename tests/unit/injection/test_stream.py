"""What a proxy sees of a stream, in whatever pieces it comes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.injection.stream import Stream

ROLE = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
TOKENS = {
    "completions": b'data: {"choices":[{"text":" w1"}]}\n\n',
    "chat": b'data: {"choices":[{"delta":{"content":"w1"}}]}\n\n',
    "spaced": b'data: {"choices": [{"delta": {"reasoning_content": "hm"}}]}\n\n',
    "reasoning": b'data: {"choices":[{"delta":{"reasoning":"hm"}}]}\n\n',
    "ids": b'data: {"choices":[{"text":"","token_ids":[7]}]}\n\n',
    "tools": b'data: {"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}\n\n',
}
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_a_role_is_no_first_token(token: bytes) -> None:
    stream = Stream(10)
    stream.take(20, HEAD)
    stream.take(30, ROLE)
    assert [stream.first_ns] == [None]
    stream.take(40, token)
    stream.take(50, token)
    assert (stream.first_ns, stream.last_ns, stream.events, stream.after_first) == (40, 50, 3, 1)
    assert stream.chunked


@given(st.sets(st.integers(1, len(HEAD + ROLE) + 2 * len(TOKENS["chat"]) - 1)))
def test_no_split_hides_an_event_or_the_first_token(cuts: set[int]) -> None:
    whole = HEAD + ROLE + TOKENS["chat"] * 2
    ends = [*sorted(cuts), len(whole)]
    stream = Stream(0)
    for time, (start, end) in enumerate(zip([0, *ends], ends, strict=False), start=1):
        stream.take(time, whole[start:end])
    assert stream.events == 3
    told = len(HEAD + ROLE) + TOKENS["chat"].index(b'"w1') + 2  # the first byte of the text
    assert stream.first_ns == next(time for time, end in enumerate(ends, start=1) if end >= told)
