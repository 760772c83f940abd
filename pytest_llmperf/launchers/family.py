"""A family: the processes of one launch, found in /proc by session and by mark, and signalled without mistaking any."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")


def members(session: int, mark: str) -> frozenset[int]:
    """Ids of the living processes of this session, or with ``mark`` (``NAME=value``) in their environment.

    A zombie is not alive. Processes of other users cannot be read and are not ours.
    """
    return frozenset(pid for pid in _pids() if _belongs(pid, session, mark))


def kill(pid: int, session: int, mark: str) -> bool:
    """SIGKILL one of the family; True if it was sent. The process is pinned first, so that its id cannot be reused."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _belongs(pid, session, mark):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())


def _belongs(pid: int, session: int, mark: str) -> bool:
    try:
        # "pid (comm) state ppid pgrp session ...": comm may hold spaces and parentheses.
        state, _, _, found, *_ = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        if state in {"Z", "X"}:
            return False
        if int(found) == session:
            return True
        return mark.encode() in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return False
