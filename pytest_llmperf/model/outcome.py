"""How a request ended."""

from __future__ import annotations

from enum import IntEnum

NEVER = -1
"""In place of a time: it did not happen. In place of a count: nobody said."""


class Outcome(IntEnum):
    """How a request ended."""

    OK = 0
    FAILED = 1
    TIMED_OUT = 2
    ABANDONED = 3
    """Not by itself: it was not sent, or not waited for, as the run was over before."""
