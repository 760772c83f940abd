from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.load.sse import _any, parse_events


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [(b"a", 9, "")]),
        (b"data:a\n\n", [(b"a", 8, "")]),
        (b"data:  a\n\n", [(b" a", 10, "")]),
        (b"data: a\r\n\r\n", [(b"a", 11, "")]),
        (b"data: a\r\r", [(b"a", 9, "")]),
        (b": ping\n\ndata: a\n\n", [(b"a", 17, "")]),
        (b"event: x\nid: 1\ndata: a\nretry: 5\n\n", [(b"a", 33, "x")]),
        (b"data: a\ndata: b\n\n", [(b"a\nb", 17, "")]),
        (b"\n\n\ndata: a\n\n", [(b"a", 12, "")]),
        (b"\xef\xbb\xbfdata: a\n\n", [(b"a", 12, "")]),
        (b"data: a\n\ndata: b\n\n", [(b"a", 9, ""), (b"b", 18, "")]),
        (b"data: a\n\ndata: b\n", [(b"a", 9, "")]),
        (b"data: a\n: ping\ndata: b\n\n", [(b"a\nb", 24, "")]),
        (b"event: x\n\ndata: a\n\n", [(b"a", 19, "")]),
        (b"event: x\ndata: a\n\ndata: b\n\n", [(b"a", 18, "x"), (b"b", 27, "")]),
        (b"event:error\ndata: a\n\n", [(b"a", 21, "error")]),
        (b"error: a\n\n", [(b"a", 10, "error")]),
        (b"data: a\n\nerror: b\n\ndata: c\n\n", [(b"a", 9, ""), (b"b", 19, "error"), (b"c", 28, "")]),
        (b"data: a\r\n\r\ndata: b\n\n", [(b"a", 11, ""), (b"b", 20, "")]),
        (b"data: a \n\n", [(b"a ", 10, "")]),
        (b"data: " + b"a" * 200_000 + b"\n\n", [(b"a" * 200_000, 200_008, "")]),
        (b"data: a", []),
        (b"", []),
    ],
)
def test_grammar(stream: bytes, expected: list[tuple[bytes, int, str]]) -> None:
    assert list(zip(*parse_events(stream), strict=True)) == expected


LINE_ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
PAYLOADS = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])).map(str.encode)
NOISE = st.sampled_from([b"", b": comment", b"event: message", b"id", b"retry: 10"])


@given(st.lists(st.tuples(PAYLOADS, NOISE)), LINE_ENDS)
def test_every_payload_comes_out_once_and_ends_where_its_empty_line_does(
    parts: list[tuple[bytes, bytes]], end: bytes
) -> None:
    stream, expected = b"", []
    for payload, noise in parts:
        stream += noise + end + b"data: " + payload + end + end
        expected.append((payload, len(stream), ""))
    assert list(zip(*parse_events(stream), strict=True)) == expected


@given(st.lists(st.tuples(PAYLOADS, NOISE)), st.binary(max_size=12))
def test_the_quick_way_and_the_general_one_agree(parts: list[tuple[bytes, bytes]], tail: bytes) -> None:
    stream = b"".join(b"data: " + payload + b"\n\n" for payload, _ in parts) + tail
    assert parse_events(stream) == _any(stream)
