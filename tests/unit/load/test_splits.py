"""However a response is split into reads, at any byte, the same is read, and each chunk has the stamp of the read that
brought its last byte. Everything goes through the connection, the framing, the body, the events and the answer.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_llmperf.load import answer
from pytest_llmperf.load.answer import read_answer
from pytest_llmperf.load.job import JobRequest
from pytest_llmperf.load.row import Row, read_row
from pytest_llmperf.model.outcome import NEVER, Outcome
from tests.unit.load.responses import (
    FRAMINGS,
    RECORDED,
    Framed,
    chunked,
    event_ends,
    received,
    until_close,
    with_length,
)

REQUEST = JobRequest(index=0, body="{}", at_ns=None, planned_input_tokens=5, asked_tokens=16)


def text_of(stream: bytes, change: Callable[[str], str]) -> bytes:
    """A recorded stream with other words, not escaped."""
    events = []
    for event in stream.split(b"\n\n")[:-1]:
        if event.startswith(b"data: {"):
            chunk = json.loads(event[6:])
            for choice in chunk.get("choices", ()):
                said = choice if "text" in choice else choice["delta"]
                said |= {key: change(said[key]) for key in ("text", "content") if said.get(key)}
            event = b"data: " + json.dumps(chunk, ensure_ascii=False).encode()  # noqa: PLW2901
        events.append(event + b"\n\n")
    return b"".join(events)


CHAT, MTP, SHORT = (
    RECORDED[name] for name in ("vllm-0.32.0_chat", "vllm-0.32.0_mtp_completions", "sglang-0.5.16_mtp_completions")
)
STREAMS = {
    **RECORDED,
    "other scripts": text_of(CHAT, lambda word: word + "é漢😀\u2028"),
    "no [DONE]": CHAT.replace(b"data: [DONE]\n\n", b""),
    "an error in the middle": CHAT.replace(
        event := CHAT.split(b"\n\n")[9] + b"\n\n", b'data: {"error": {"message": "out of memory"}}\n\n' + event
    ),
    "no JSON in the middle": CHAT.replace(event, b"data: {broken\n\n" + event),
    "cut in the middle": CHAT[: len(CHAT) // 2],
    "no event at all": b"<html>Bad gateway</html>",
    "nothing": b"",
}
DIALECTS: dict[str, Callable[[bytes], bytes]] = {
    "CRLF": lambda stream: stream.replace(b"\n", b"\r\n"),
    "CR": lambda stream: stream.replace(b"\n", b"\r"),
    "comments": lambda stream: stream.replace(b"data: ", b": ping\n\n: more\ndata:"),
    "names": lambda stream: stream.replace(b"data: ", b"event: message\nid: 7\ndata: "),
    "a mark at the beginning": lambda stream: b"\xef\xbb\xbf" + stream,
}


def row(raw: bytes, ends: Sequence[int], lost: Exception | None = None) -> Row:
    return read_row(REQUEST, received(raw, ends, lost), exact_output=False)


def unstamped(found: Row) -> Row:
    """Without the times of reads; how many chunks there were stays."""
    unstamped = [NEVER] * len(found.chunk_ns)
    return replace(found, chunk_ns=unstamped, first_token_ns=NEVER, last_token_ns=NEVER, done_ns=NEVER)


def assert_same(framed: Framed, stream: bytes, ends: Sequence[int], whole: Row, lost: Exception | None = None) -> None:
    """What the reads that end at ``ends`` say is what one read of everything says."""
    raw, brought = framed
    exchange = received(raw, ends, lost)
    assert len(exchange.stamps) == len(ends), "the last read, and none before it, ends the response"
    found = read_row(REQUEST, exchange, exact_output=False)
    assert unstamped(found) == unstamped(whole)
    needed = [brought[end - 1] for end in read_answer(stream).chunk_ends]
    assert list(found.chunk_ns) == [1 + bisect_left(ends, byte) for byte in needed]
    assert (found.first_token_ns, found.last_token_ns) == (
        (found.chunk_ns[0], found.chunk_ns[-1]) if needed else (NEVER, NEVER)
    )


def whole_row(framed: Framed) -> Row:
    """Of one read of everything."""
    return row(framed[0], [len(framed[0])])


@cache
def framed_stream(name: str, framing: str) -> tuple[Framed, Row]:
    framed = FRAMINGS[framing](STREAMS[name])
    return framed, whole_row(framed)


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("name", STREAMS)
def test_every_byte_in_a_read_of_its_own(name: str, framing: str) -> None:
    framed, whole = framed_stream(name, framing)
    assert_same(framed, STREAMS[name], range(1, len(framed[0]) + 1), whole)


def test_recorded_streams_are_read_whole_before_anything_is_compared() -> None:
    """Else the tests here could agree on nothing."""
    read = {name: whole_row(with_length(stream)) for name, stream in STREAMS.items()}
    good = {name for name, found in read.items() if found.outcome == Outcome.OK}
    assert good == {*RECORDED, "other scripts", "no [DONE]"} - {"vllm-0.32.0_error_inside_200"}
    assert all(found.chunk_ns and found.output_tokens > 0 for name, found in read.items() if name in good)
    assert [len(read[name].chunk_ns) for name in ("an error in the middle", "no JSON in the middle")] == [8, 8]
    assert all(found.reason for name, found in read.items() if name not in good)
    assert all(set(read_answer(stream).chunk_ends) <= set(event_ends(stream)) for stream in STREAMS.values())


@pytest.mark.parametrize("framing", ["a chunk an event", "chunks of 97", "until the end"])
def test_two_reads_divided_at_every_byte(framing: str) -> None:
    framed = FRAMINGS[framing](SHORT)
    raw, whole = framed[0], whole_row(framed)
    for cut in range(1, len(raw)):
        assert_same(framed, SHORT, [cut, len(raw)], whole)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects_divided_at_every_byte(dialect: str) -> None:
    """Above all between CR and LF, where an event ends with the first, or with the second."""
    events = [event + b"\n\n" for event in CHAT.split(b"\n\n")[:3]]
    stream = DIALECTS[dialect](b"".join(events))
    mark = 3 if dialect == "a mark at the beginning" else 0
    _, *ends = accumulate(len(DIALECTS[dialect](event)) - mark for event in events)
    assert read_answer(stream).chunk_ends == tuple(mark + end for end in ends)
    framed = until_close(stream)
    raw, whole = framed[0], whole_row(framed)
    for cut in range(1, len(raw)):
        assert_same(framed, stream, [cut, len(raw)], whole)


CUTS = st.lists(st.integers(0, 2**31), max_size=60)


def reads(raw: bytes, cuts: Sequence[int]) -> list[int]:
    return [*sorted({cut % len(raw) for cut in cuts} - {0}), len(raw)]


@settings(deadline=None, max_examples=200)
@given(name=st.sampled_from(sorted(STREAMS)), framing=st.sampled_from(sorted(FRAMINGS)), cuts=CUTS)
def test_any_reads_of_any_stream_in_any_framing(name: str, framing: str, cuts: list[int]) -> None:
    framed, whole = framed_stream(name, framing)
    assert_same(framed, STREAMS[name], reads(framed[0], cuts), whole)


@settings(deadline=None, max_examples=200)
@given(
    name=st.sampled_from(sorted(STREAMS)), dialects=st.sets(st.sampled_from(sorted(DIALECTS))), cuts=CUTS,
    sizes=st.lists(st.integers(1, 3000), max_size=40),
)  # fmt: skip
def test_any_chunks_of_any_dialect(name: str, dialects: set[str], sizes: list[int], cuts: list[int]) -> None:
    stream = STREAMS[name]
    for dialect in sorted(dialects, reverse=True):  # line ends last
        stream = DIALECTS[dialect](stream)
    framed = chunked(stream, sizes)
    assert_same(framed, stream, reads(framed[0], cuts), whole_row(framed))


RESET = ConnectionResetError()


@settings(deadline=None, max_examples=200)
@given(
    name=st.sampled_from(sorted(RECORDED)), framing=st.sampled_from(sorted(FRAMINGS)), left=st.integers(1, 2**31),
    cuts=CUTS, lost=st.sampled_from([None, RESET]),
)  # fmt: skip
def test_a_response_that_breaks_off_anywhere(
    name: str, framing: str, left: int, cuts: list[int], lost: Exception | None
) -> None:
    raw, brought = FRAMINGS[framing](RECORDED[name])
    raw = raw[: left % len(raw)] or raw[:1]
    came = RECORDED[name][: bisect_left(brought, len(raw) + 1)]
    whole = row(raw, [len(raw)], lost)
    assert_same((raw, brought), came, reads(raw, cuts), whole, lost)
    if lost is not None or framing != "until the end":
        assert whole.outcome == Outcome.FAILED
        how = "closed" if lost is None else "reset"
        assert whole.reason.startswith((f"connection {how} mid-stream", "error event: "))


CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
NO_ANSWERS = {
    "a length": (b'HTTP/1.1 503 X\r\nContent-Length: 30\r\n\r\n{"error": {"message": "full"}} ', "HTTP 503: full"),
    "chunks": (b"HTTP/1.1 400 X\r\n" + CHUNKED + b"3\r\nabc\r\n0\r\n\r\n", "HTTP 400: abc"),
    "until the end": (b"HTTP/1.1 500 X\r\nConnection: close\r\n\r\nbroken", "HTTP 500: broken"),
    "no body": (b"HTTP/1.1 429 X\r\nContent-Length: 0\r\n\r\n", "HTTP 429: "),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n\r\n", "no HTTP/1.1 response: 'SSH-2.0-OpenSSH'"),
    "no chunk size": (b"HTTP/1.1 200 X\r\n" + CHUNKED + b"zz\r\nabc", "chunk size b'zz' is no number"),
    "half a head": (b"HTTP/1.1 200 X\r\nContent-", "connection closed mid-stream"),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_what_is_no_answer_divided_at_every_byte(name: str) -> None:
    raw, reason = NO_ANSWERS[name]
    whole = row(raw, [len(raw)])
    assert whole.reason.startswith(reason)
    assert (whole.outcome, list(whole.chunk_ns)) == (Outcome.FAILED, [])
    for ends in ([*range(1, len(raw) + 1)], *([cut, len(raw)] for cut in range(1, len(raw)))):
        assert unstamped(row(raw, ends)) == unstamped(whole)


def long_stream(events: int, strange: bytes, place: int) -> bytes:
    """``events`` chunks of a recorded stream, and a strange event at ``place`` among them."""
    words = CHAT.split(b"\n\n")[1:16]
    made = [words[number % len(words)] + b"\n\n" for number in range(events)]
    made[place:place] = [strange]
    return b"".join(made) + b"".join(event + b"\n\n" for event in CHAT.split(b"\n\n")[16:18]) + b"data: [DONE]\n\n"


STRANGE = {
    "nothing": (b"", False),
    "a comment": (b": ping\n\n", False),
    "an empty event": (b"data: \n\n", False),
    "a name": (b"event: ping\ndata: 12:30\n\n", False),
    "half a surrogate pair": (b'data: {"choices": [], "more": "\\ud83d"}\n\n', False),
    "the word error": (b'data: {"choices": [], "error": null}\n\n', False),
    "an error": (b'data: {"error": {"message": "ill"}}\n\n', True),
    "no JSON": (b"data: {\n\n", True),
    "two in one": (b'data: {"choices": []},{"choices": []}\n\n', True),
    "a count that cannot be": (b'data: {"choices": [], "usage": {"completion_tokens": -1}}\n\n', True),
    "[DONE]": (b"data: [DONE]\n\n", True),
}
AROUND = [0, 1, 254, 255, 256, 257, 511, 512, 513]


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("place", AROUND)
def test_a_strange_event_at_the_border_of_a_batch(name: str, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events are parsed in batches; where one falls makes no difference, and all before an error are kept."""
    assert answer._BATCH == 256
    strange, final = STRANGE[name]
    stream = long_stream(514, strange, place)
    together = read_answer(stream)
    ends = [end for end, (start, _) in zip(event_ends(stream), pairwise([0, *event_ends(stream)]), strict=True)
            if b'"content":" ' in stream[start:end]]  # fmt: skip
    assert together.chunk_ends == tuple(ends[: place if final else None])
    assert bool(together.error) == (final and name != "[DONE]")
    monkeypatch.setattr(answer, "_BATCH", 1)
    assert read_answer(stream) == together


@pytest.mark.parametrize("name", ["nothing", "a name", "no JSON", "[DONE]"])
def test_a_long_stream_in_reads_of_any_length(name: str) -> None:
    stream = long_stream(600, STRANGE[name][0], 256)
    framed = FRAMINGS["a chunk an event"](stream)
    whole = whole_row(framed)
    for size in (1, 7, 250, 4096, 65536):
        assert_same(framed, stream, reads(framed[0], range(0, len(framed[0]), size)), whole)


def test_counts_go_on_across_batches() -> None:
    """Usage in every chunk says how many tokens there were so far; the first of a batch needs the last of another."""
    counts = [1 + number % 4 for number in range(600)]
    stream = b"".join(
        b'data: {"choices": [{"text": "a"}], "usage": {"completion_tokens": %d}}\n\n' % total
        for total in accumulate(counts)
    )
    assert read_answer(stream).chunk_tokens == tuple(counts)
