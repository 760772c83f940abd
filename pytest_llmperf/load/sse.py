"""Server-sent events: bytes of a stream -> events. No I/O.

Follows the WHATWG grammar: lines end with LF, CRLF or CR; an empty line completes an event; ``data:`` may or may not be
followed by a space; comments and other fields are skipped; an event that no empty line completed is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# What nearly all of a stream is: a whole event of one data line. Else any one line.
_EVENT_OR_LINE = re.compile(rb"data: ?([^\r\n]*)(?:\n\n|\r\n\r\n|\r\r)|([^\r\n]*)(?:\r\n|\n|\r)")
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """``data`` of one event; ``end`` is the offset behind the last byte that it needed."""

    data: bytes
    end: int


def events(stream: bytes) -> Iterator[Event]:
    """All complete events of a stream that has data, in order."""
    data: list[bytes] = []
    for match in _EVENT_OR_LINE.finditer(stream, len(_BOM) if stream.startswith(_BOM) else 0):
        whole, line = match.groups()
        if whole is not None:
            yield Event(b"\n".join([*data, whole]) if data else whole, match.end())
            data = []
        elif line.startswith(b"data:"):
            data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif not line and data:
            yield Event(b"\n".join(data), match.end())
            data = []
