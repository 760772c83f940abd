"""Server-sent events: bytes of a stream -> events. No I/O.

Follows the WHATWG grammar: lines end with LF, CRLF or CR; an empty line completes an event; ``data:`` may or may not be
followed by a space; comments and other fields are skipped; an event that no empty line completed is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """``data`` of one event; ``end`` is the offset behind the last byte that it needed."""

    data: bytes
    end: int


def events(stream: bytes) -> Iterator[Event]:
    """All complete events of a stream that has data, in order."""
    data: list[bytes] = []
    position = len(_BOM) if stream.startswith(_BOM) else 0
    for line_end in _LINE_END.finditer(stream, position):
        line = stream[position : line_end.start()]
        position = line_end.end()
        if line.startswith(b"data:"):
            data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and data:
            yield Event(b"\n".join(data), position)
            data = []
