"""A body: what a response carries, without its framing, and where in the response each byte of it was. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, repeat
from operator import add, le, lt

from pytest_llmperf.load.http1 import Head, Raw, parse_chunk_size

_LINE_END = b"\r\n"
_LAST_CHUNK = [b"0", b"", b""]


@dataclass(frozen=True, slots=True)
class Body:
    """A body in pieces, one for each chunk of the response.

    Attributes:
        data: all of it that came.
        ends: where in ``data`` each piece ends.
        shifts: for each piece, how much further a byte of it is from the beginning of the response than of ``data``.
    """

    data: bytes
    ends: Sequence[int]
    shifts: Sequence[int]

    def offsets(self, ends: Sequence[int]) -> list[int]:
        """For each of ascending numbers of first bytes of ``data``, at least 1: how many of the response they need."""
        shifts = self.shifts
        return [shifts[piece] + end for piece, end in zip(reached(self.ends, ends), ends, strict=True)]


def reached(steps: Sequence[int], wanted: Sequence[int]) -> Sequence[int]:
    """For each wanted number the place of the first step that is not below it; both ascend, the last step highest."""
    if all(map(le, wanted, steps)) and all(map(lt, steps, islice(wanted, 1, None))):
        return range(len(wanted))  # one in each step from the first on, as nearly always
    places, place = [], 0
    for number in wanted:
        while steps[place] < number:
            place += 1
        places.append(place)
    return places


def extract_body(raw: Raw, head: Head) -> Body:
    """The body of a response, whole or not.

    Raises:
        HttpError: its framing is malformed.
    """
    raw = bytes(raw)
    if head.chunked:
        whole = _whole(raw, head.body_at)
        return _any(raw, head.body_at) if whole is None else whole
    end = len(raw) if head.length is None else min(len(raw), head.body_at + head.length)
    return Body(raw[head.body_at : end], [end - head.body_at], [head.body_at])


def _whole(raw: bytes, start: int) -> Body | None:
    """A body whose chunks are all there, without extensions, trailers or line ends in them; None for another one."""
    parts = raw[start:].split(_LINE_END)
    if len(parts) % 2 == 0 or parts[-3:] != _LAST_CHUNK:
        return None
    sizes, pieces = parts[:-3:2], parts[1:-3:2]
    lengths = list(map(len, pieces))
    try:
        length_of = {size: int(size, 16) for size in set(sizes)}
        if list(map(length_of.__getitem__, sizes)) != lengths:
            return None
    except ValueError:
        return None
    framing = map(add, map(len, sizes), repeat(2 * len(_LINE_END)))
    shifts = list(accumulate(framing, initial=start - len(_LINE_END)))
    return Body(b"".join(pieces), list(accumulate(lengths)), shifts[1:])


def _any(raw: bytes, position: int) -> Body:
    pieces, shifts, length = [], [], 0
    while (line_end := raw.find(_LINE_END, position)) >= 0:
        size = parse_chunk_size(raw[position:line_end])
        if size == 0:
            break
        start = line_end + len(_LINE_END)
        pieces.append(raw[start : start + size])
        shifts.append(start - length)
        length += size
        position = start + size + len(_LINE_END)
    return Body(b"".join(pieces), list(accumulate(map(len, pieces))), shifts)
