from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.load.body import _any, extract_body
from pytest_llmperf.load.http1 import (
    ANSWER_LIMIT,
    HEAD_LIMIT,
    Framing,
    Head,
    HttpError,
    parse_head,
    render_request,
)

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunked(body: bytes, sizes: list[int], extension: bytes = b"", trailer: bytes = b"") -> bytes:
    encoded, start = b"", 0
    for size in [*sizes, len(body)]:
        piece = body[start : start + size]
        if piece:
            encoded += f"{len(piece):x}".encode() + extension + b"\r\n" + piece + b"\r\n"
        start += size
    return CHUNKED + encoded + b"0\r\n" + trailer + b"\r\n"


def framed(raw: bytes, cuts: list[int]) -> tuple[Framing, list[int], list[bool]]:
    """Feed ``raw`` cut at ``cuts``: the framing, bytes after each read, and what each read was told."""
    ends = [*sorted({cut % len(raw) for cut in cuts} - {0}), len(raw)]
    framing = Framing()
    told = [framing.complete(raw[start:end]) for start, end in pairwise([0, *ends])]
    return framing, ends, told


def test_request_is_what_a_server_expects() -> None:
    request = render_request("host:1", "/v1/completions", {"Authorization": "Bearer k"}, b"{}")
    head, _, body = request.partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /v1/completions HTTP/1.1"
    assert {b"Host: host:1", b"Content-Length: 2", b"Authorization: Bearer k"} <= set(head.split(b"\r\n"))
    assert body == b"{}"


def test_head() -> None:
    raw = b"HTTP/1.1 503 Unwell\r\ncontent-LENGTH: 5\r\nConnection: Close\r\nContent-Type: a/b\r\n\r\nabcde"
    assert parse_head(raw) == Head(
        status=503, body_at=len(raw) - 5, chunked=False, length=5, keep_alive=False, content_type="a/b"
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"x" * (HEAD_LIMIT + 1),
    ],
)
def test_what_is_no_head_is_an_error(raw: bytes) -> None:
    with pytest.raises(HttpError):
        parse_head(raw)


@given(
    body=st.binary(max_size=60) | st.lists(st.sampled_from([b"\r\n", b"0", b"a"])).map(b"".join),
    sizes=st.lists(st.integers(1, 50), max_size=10),
    cuts=st.lists(st.integers(0, 10_000), max_size=20),
    extension=st.sampled_from([b"", b";name=value"]),
    trailer=st.sampled_from([b"", b"X-Trailer: 1\r\n"]),
)
def test_chunked_body_ends_with_its_last_byte_however_it_is_split(
    body: bytes, sizes: list[int], cuts: list[int], extension: bytes, trailer: bytes
) -> None:
    raw = chunked(body, sizes, extension, trailer)
    framing, _, told = framed(raw, cuts)
    assert told == [False] * (len(told) - 1) + [True]
    assert framing.head is not None
    extracted = extract_body(raw, framing.head)
    assert extracted.data == body
    assert extracted == _any(raw, framing.head.body_at)
    whole = framing.head
    shortest = [
        bisect_left(range(len(raw)), end, key=lambda n: len(extract_body(raw[:n], whole).data))
        for end in range(1, len(body) + 1)
    ]
    assert extracted.offsets(range(1, len(body) + 1)) == shortest


@given(st.binary(max_size=200), st.integers(0, 300))
def test_a_cut_off_chunked_body_is_never_complete_and_keeps_what_came(body: bytes, missing: int) -> None:
    whole = chunked(body, [7])
    raw = whole[: max(len(CHUNKED), len(whole) - 1 - missing)]
    framing, _, told = framed(raw, [])
    assert told == [False]
    assert framing.head is not None
    assert body.startswith(extract_body(raw, framing.head).data)


@pytest.mark.parametrize("size", [1, 15, 16, 255, 256, 4095, 4096, 70_000])
def test_a_chunk_a_read(size: int) -> None:
    chunk = b"%x\r\n" % size + b"x" * size + b"\r\n"
    framing = Framing()
    assert [framing.complete(read) for read in (CHUNKED, chunk, chunk, b"0\r\n\r\n")] == [False, False, False, True]


def test_what_looks_like_a_chunk_within_a_chunk_is_none() -> None:
    inner = b"10\r\n" + b"x" * 16 + b"\r\n"
    reads = [CHUNKED, b"%x\r\n" % (2 * len(inner) + 3), inner, inner, b"abc\r\n", inner, b"0\r\n\r\n"]
    framing = Framing()
    assert [framing.complete(read) for read in reads] == [False] * (len(reads) - 1) + [True]
    assert framing.head is not None
    assert extract_body(b"".join(reads), framing.head).data == 2 * inner + b"abc" + b"x" * 16


def test_a_read_as_long_as_a_chunk_that_is_none_is_looked_at() -> None:
    framing = Framing()
    framing.complete(CHUNKED)
    with pytest.raises(HttpError, match="chunk size b'zz'"):
        framing.complete(b"zz\r\n" + b"x" * 16 + b"\r\n")
    whole = b"1\r\na\r\n0\r\n\r\n"
    assert framed(CHUNKED + whole + b"x" * (22 - len(whole)), [len(CHUNKED)])[2] == [False, True]


def test_a_length_ends_the_body_and_no_length_never_does() -> None:
    with_length = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"
    assert framed(with_length, [5, 30, len(with_length) - 1])[2] == [False, False, False, True]
    assert framed(b"HTTP/1.1 200 OK\r\n\r\nabc", [])[2] == [False]


def test_a_malformed_chunk_size_is_an_error() -> None:
    with pytest.raises(HttpError, match="chunk size b'zz'"):
        framed(CHUNKED + b"zz\r\nabc", [])


def test_an_endless_answer_is_an_error() -> None:
    with pytest.raises(HttpError, match="longer than"):
        Framing().complete(bytearray(CHUNKED) + bytearray(ANSWER_LIMIT))


INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@given(st.lists(st.integers(0, 10_000), max_size=20))
def test_interim_heads_are_skipped(cuts: list[int]) -> None:
    raw = INTERIM + chunked(b"abc", [2])
    framing, _, told = framed(raw, cuts)
    assert told == [False] * (len(told) - 1) + [True]
    assert framing.head is not None
    assert framing.head.status == 200
    assert extract_body(raw, framing.head).data == b"abc"


def test_interim_heads_for_ever_are_an_error() -> None:
    assert parse_head(INTERIM) is None
    with pytest.raises(HttpError, match="no end of the response's head"):
        parse_head(INTERIM * 2000)


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_that_has_no_body_is_complete_with_its_head(status: int) -> None:
    assert Framing().complete(bytearray(f"HTTP/1.1 {status} X\r\n\r\n".encode()))


def test_a_compressed_answer_is_said_to_be_one() -> None:
    with pytest.raises(HttpError, match="HTTP 200 with Content-Encoding: gzip"):
        parse_head(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
    assert b"\r\nAccept-Encoding: identity\r\n" in render_request("h", "/", {}, b"{}")
