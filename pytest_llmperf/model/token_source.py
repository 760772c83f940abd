"""Where a count of output tokens comes from."""

from __future__ import annotations

from enum import IntEnum


class TokenSource(IntEnum):
    """Who counted the tokens; the number of chunks is never a count of tokens."""

    NONE = 0
    """Nobody did: the count is unknown."""
    USAGE = 1
    """The server, in a usage object."""
    TOKEN_IDS = 2
    """The server sent the tokens' ids, and they were counted."""
