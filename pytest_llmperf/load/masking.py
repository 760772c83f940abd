"""Masking: the API key, in whatever form a server echoes it, made unreadable. No I/O."""

from __future__ import annotations

import re

_FRAMING = rb"\r\n[0-9a-fA-F]+\r\n"
"""Between two chunks of a response a key may be cut in two."""


def masked(raw: bytes | bytearray, key: str) -> bytes:
    r"""The bytes with every echo of the key replaced by as many asterisks: what counts or frames bytes stays right.

    Found as it is, escaped as JSON does it (``\/``, ``\u002d``), and cut by the framing of chunks.
    """
    if not key:
        return bytes(raw)
    pattern = (b"(?:" + _FRAMING + b")?").join(_forms(char) for char in key)
    return re.sub(pattern, _asterisks, raw)


def _forms(char: str) -> bytes:
    units = char.encode("utf-16-be", "surrogatepass")
    escaped = b"".join(rb"\\u(?i:%02x%02x)" % pair for pair in zip(units[::2], units[1::2], strict=True))
    forms = [re.escape(char.encode("utf-8", "surrogateescape")), escaped]
    if char in '"\\/':
        forms.insert(0, re.escape(b"\\" + char.encode()))  # first, or half of an escaped backslash at the end stays
    return b"(?:" + b"|".join(forms) + b")"


def _asterisks(found: re.Match[bytes]) -> bytes:
    pieces = re.split(b"(" + _FRAMING + b")", found[0])
    return b"".join(piece if place % 2 else b"*" * len(piece) for place, piece in enumerate(pieces))
