from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_llmperf.load.masking import masked

KEY = "sk-a/b+0"


@pytest.mark.parametrize(
    "echo",
    [b"sk-a/b+0", rb"sk-a\/b+0", rb"sk\u002da\u002Fb+0", b"sk-\r\n5\r\na/b+0"],
    ids=["plain", "slash", "escaped", "cut by a chunk"],
)
def test_every_form_of_the_key_is_masked_in_place(echo: bytes) -> None:
    clean = masked(b"<Bearer " + echo + b">", KEY)
    assert len(clean) == len(echo) + 9
    assert not [piece for piece in (b"sk", b"/b", b"b+0") if piece in clean]
    assert clean.startswith(b"<Bearer *")
    assert clean.endswith(b"*>")


def test_the_framing_inside_a_key_stays() -> None:
    assert masked(b"sk-a\r\n4\r\n/b+0", KEY) == b"****\r\n4\r\n****"


@given(st.binary(max_size=60))
def test_other_bytes_are_left_alone(raw: bytes) -> None:
    assert masked(raw, "") == raw
    assert masked(raw, "no such key in there") == raw


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12))
@example("ends with a backslash\\")
def test_a_key_in_json_is_masked_whatever_it_is(key: str) -> None:
    echo = json.dumps(key)[1:-1].encode()
    assert masked(echo, key) == b"*" * len(echo)
