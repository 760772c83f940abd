"""HTTP/1.1 as far as a load client needs it: one request out, the framing of one response in. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HEAD_LIMIT = 64 * 1024
ANSWER_LIMIT = 64 * 1024 * 1024
"""Bytes of a head and of a whole response; a server that sends more is broken, and memory is not endless."""

_LINE_END = b"\r\n"
_HEAD_END = 2 * _LINE_END
_size_line = {len(line) + size + 2: line[:4] for size in range(0x10, 0x1000) if (line := b"%x\r\n" % size)}.get
"""For the length of a whole chunk how it begins: nearly every read is one, and is known without being parsed."""
_INTERIM = range(100, 200)
_WITHOUT_BODY = {204, 304}

Raw = bytes | bytearray


class HttpError(ValueError):
    """Bytes that are no HTTP/1.1 response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the head of a response says about its body, which begins at ``body_at``.

    The body is in chunks, or ``length`` bytes long, or (``length`` None) ends when the connection does.
    """

    status: int
    body_at: int
    chunked: bool
    length: int | None
    keep_alive: bool
    content_type: str


def render_request(host: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """A POST of a JSON body, ready for the socket."""
    lines = {
        "Host": host,
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "Accept-Encoding": "identity",
        "Content-Length": str(len(body)),
        **headers,
    }
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return head.encode("latin-1") + b"\r\n" + body


def parse_head(raw: Raw) -> Head | None:
    """The final head of a response, None while it is not all there; interim ones (100, 103) before it are skipped.

    Raises:
        HttpError: this is no head, one without an end, or one of a compressed body.
    """
    start = 0
    while (end := raw.find(_HEAD_END, start)) >= 0:
        head = _head(bytes(raw[start:end]), end + len(_HEAD_END))
        if head.status not in _INTERIM:
            return head
        start = head.body_at
    if len(raw) > HEAD_LIMIT:
        raise HttpError(f"no end of the response's head within {HEAD_LIMIT} bytes")
    return None


def _head(raw: bytes, body_at: int) -> Head:
    first, *lines = raw.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    digits = rest[:3]
    if version not in {"HTTP/1.1", "HTTP/1.0"} or not (digits.isascii() and digits.isdigit()):
        raise HttpError(f"no HTTP/1.1 response: {first[:80]!r}")
    status = int(digits)
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if (coding := fields.get("content-encoding", "identity").lower()) != "identity":
        raise HttpError(f"HTTP {status} with Content-Encoding: {coding[:80]}, though identity was asked for")
    length = "0" if status in _WITHOUT_BODY else fields.get("content-length")
    if length is not None and not (length.isascii() and length.isdigit()):
        raise HttpError(f"Content-Length: {length[:80]!r} is no number")
    chunked = "chunked" in fields.get("transfer-encoding", "").lower()
    return Head(
        status=status,
        body_at=body_at,
        chunked=chunked,
        length=int(length) if length is not None and not chunked else None,
        keep_alive=version == "HTTP/1.1" and "close" not in fields.get("connection", "").lower(),
        content_type=fields.get("content-type", ""),
    )


class Framing:
    """Finds the end of one response while its bytes come in; looks at each chunk's size once."""

    __slots__ = ("_at_chunk", "_left", "_room", "_unread", "head")

    def __init__(self) -> None:
        self.head: Head | None = None
        self._room = ANSWER_LIMIT
        self._left = 0  # bytes of the body, or of the chunk that has begun, still to come
        self._unread: Raw = b""  # a head, a chunk's size or trailers of which the end has not come
        self._at_chunk = False  # whether a chunk begins with the next byte

    def complete(self, data: Raw) -> bool:
        """Whether the response is whole with ``data``, its next bytes. Without a length only EOF can end it.

        Raises:
            HttpError: the bytes are malformed, or too many.
        """
        length = len(data)
        self._room = room = self._room - length
        if self._at_chunk and room >= 0 and data[:4] == _size_line(length):
            return False
        return self._complete(data)

    def _complete(self, data: Raw) -> bool:
        if self._room < 0:
            raise HttpError(f"the response is longer than {ANSWER_LIMIT} bytes")
        if self._unread:
            data, self._unread = self._unread + data, b""
        if self.head is None:
            self.head = parse_head(data)
            if self.head is None:
                self._unread = data
                return False
            data = data[self.head.body_at :]
            self._left = self.head.length or 0
        if self.head.chunked:
            return self._last_chunk_is_in(data)
        self._left -= len(data)
        return self.head.length is not None and self._left <= 0

    def _last_chunk_is_in(self, data: Raw) -> bool:
        at = self._left
        while at < len(data):
            size_end = data.find(_LINE_END, at)
            if size_end < 0:
                break
            size = parse_chunk_size(data[at:size_end])
            if size == 0:
                if data.find(_HEAD_END, size_end) >= 0:  # trailers, mostly none, end with an empty line
                    return True
                break
            at = size_end + len(_LINE_END) + size + len(_LINE_END)
        self._left, self._unread = max(0, at - len(data)), data[at:]
        self._at_chunk = at == len(data)
        return False


def parse_chunk_size(line: Raw) -> int:
    """The size that begins a chunk of a body in chunks; extensions are skipped.

    Raises:
        HttpError: it is no number.
    """
    digits = bytes(line).partition(b";")[0].strip()
    try:
        size = int(digits, 16)
    except ValueError:
        size = -1
    if size < 0:
        raise HttpError(f"chunk size {digits[:20]!r} is no number")
    return size
