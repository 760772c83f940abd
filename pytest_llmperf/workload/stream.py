"""A stream of random numbers that is the same in every version of Python and of everything else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import count
from struct import iter_unpack

_BLOCK = 1 << 16


def below(limit: int, key: str) -> Iterator[int]:
    """Whole numbers from 0 up to ``limit``, excluded; endless.

    SHAKE-256 of the key, eight bytes a number, modulo the limit: for a million tokens the most likely one is preferred
    by less than one part in 10 ** 13. About four times as fast as ``random.Random``, whose other methods than
    ``random`` may give other numbers in another version.
    """
    for block in count():
        digest = hashlib.shake_256(f"{key}:{block}".encode()).digest(_BLOCK)
        for (number,) in iter_unpack("<Q", digest):
            yield number % limit
