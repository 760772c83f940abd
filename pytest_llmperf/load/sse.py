"""Server-sent events: bytes of a stream -> events. No I/O.

Follows the WHATWG grammar: lines end with LF, CRLF or CR; an empty line completes an event; ``data:`` may or may not be
followed by a space; several ``data:`` lines make one event; comments and other fields are skipped; an event that no
empty line completed is dropped. Beyond it, a line ``error:`` is the data of an event of that name, as llama.cpp's
server has it.
"""

from __future__ import annotations

import re
from itertools import accumulate, repeat
from operator import add
from typing import NamedTuple

_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\n|\r)")
_BOM = b"\xef\xbb\xbf"
_DATA = b"data: "
_END = b"\n\n"


class Events(NamedTuple):
    """The complete events of a stream that have data, in order, as columns.

    Attributes:
        datas: of each, its lines joined.
        ends: the offset behind the last byte that it needed.
        names: "" for the default one, ``message``.
    """

    datas: list[bytes]
    ends: list[int]
    names: list[str]


def parse_events(stream: bytes) -> Events:
    """The events of a stream, whole or not."""
    plain = _plain(stream)
    return _any(stream) if plain is None else plain


def _plain(stream: bytes) -> Events | None:
    """The events of a stream that has only ``data: ...`` and empty lines, as nearly all have; None for another one."""
    if not (stream.startswith(_DATA) and stream.endswith(_END)):
        return None
    datas = stream[len(_DATA) : -len(_END)].split(_END + _DATA)
    if stream.count(b"\n") != len(_END) * len(datas) or b"\r" in stream:
        return None
    ends = accumulate(map(add, map(len, datas), repeat(len(_DATA) + len(_END))))
    return Events(datas, list(ends), [""] * len(datas))


def _any(stream: bytes) -> Events:
    found = Events([], [], [])
    data: list[bytes] = []
    name = ""
    for match in _LINE.finditer(stream, len(_BOM) if stream.startswith(_BOM) else 0):
        line = match[1]
        if not line:
            if data:
                found.datas.append(b"\n".join(data))
                found.ends.append(match.end())
                found.names.append(name)
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
    return found
