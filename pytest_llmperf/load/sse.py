"""Server-sent events: bytes of a stream -> events. No I/O.

Follows the WHATWG grammar: lines end with LF, CRLF or CR; an empty line completes an event; ``data:`` may or may not be
followed by a space; several ``data:`` lines make one event; comments and other fields are skipped; an event that no
empty line completed is dropped. Beyond it, a line ``error:`` is the data of an event of that name, as llama.cpp's
server has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate, repeat
from typing import NamedTuple

_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\n|\r)")
_BOM = b"\xef\xbb\xbf"
_DATA = b"data: "
_END = b"\n\n"


class Event(NamedTuple):
    """One event.

    Attributes:
        data: its lines, joined.
        end: the offset behind the last byte that it needed.
        name: of an event other than the default one, ``message``.
    """

    data: bytes
    end: int
    name: str = ""


def events(stream: bytes) -> Iterator[Event]:
    """All complete events of a stream that has data, in order."""
    plain = _plain(stream)
    return _any(stream) if plain is None else plain


def _plain(stream: bytes) -> Iterator[Event] | None:
    """The events of a stream that has only ``data: ...`` and empty lines, as nearly all have; None for another one."""
    blocks = stream.split(_END)
    del blocks[-1]  # what no empty line completed
    if b"\r" in stream or stream.count(b"\n", 0, stream.rfind(_END) + len(_END)) != len(_END) * len(blocks):
        return None
    if not all(map(bytes.startswith, blocks, repeat(_DATA))):
        return None
    ends = accumulate(len(block) + len(_END) for block in blocks)
    return map(Event, (block[len(_DATA) :] for block in blocks), ends)


def _any(stream: bytes) -> Iterator[Event]:
    data: list[bytes] = []
    name = ""
    for match in _LINE.finditer(stream, len(_BOM) if stream.startswith(_BOM) else 0):
        line = match[1]
        if not line:
            if data:
                yield Event(b"\n".join(data), match.end(), name)
            data, name = [], ""
            continue
        field, _, value = line.partition(b":")
        value = value[value.startswith(b" ") :]
        if field == b"data":
            data.append(value)
        elif field == b"error":
            data.append(value)
            name = "error"
        elif field == b"event":
            name = "" if value == b"message" else value.decode("utf-8", "replace")
