"""The host lease: one measurement at a time on this machine, across processes and pytest-xdist workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from filelock import FileLock, Timeout

from pytest_llmperf.errors import BusyError
from pytest_llmperf.leases.folder import lease_folder

WAIT_S = 2 * 3600.0
"""How long to wait for another measurement. A lease lasts for one case, so nobody waits for a whole suite."""


SAY_AFTER_S = 5.0
"""A wait that is longer is said in a line that stays, also where there is no terminal: CI would just be silent."""

_POLL_S = 0.2


@runtime_checkable
class Announcer(Protocol):
    """A display that can also print a line that stays."""

    def say(self, line: str) -> None:
        """Print ``line``, once per session."""


class HostLease:
    """A context in which nobody else of this user measures here. The kernel ends it when the process dies.

    Not for two contexts at once in one process: the second would wait for the first.

    Args:
        show: takes one line that says who is waited for; an ``Announcer`` is told again after ``SAY_AFTER_S``.
        wait_s: how long to wait.
        folder: of the lock file; None for the user's own on this machine.
    """

    def __init__(
        self, *, show: Callable[[str], None] | None = None, wait_s: float = WAIT_S, folder: Path | None = None
    ) -> None:
        self._show = show
        self._display: object = show  # what else it can do is asked of the object, not of its type
        self._wait_s = wait_s
        path = (folder or lease_folder()) / "host.lock"
        self._lock = FileLock(path)
        self._holder = path.with_suffix(".holder")

    def __enter__(self) -> Self:
        """Wait for the lease.

        Raises:
            BusyError: ``wait_s`` passed; the text names the holder.
        """
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            self._wait()
        try:
            self._holder.write_text(f"pid {os.getpid()}")
        except OSError:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def _wait(self) -> None:
        if self._show is not None:
            self._show(f"waiting for the measurement of {self._who()} to end")
        silent_s = min(SAY_AFTER_S, self._wait_s)
        try:
            self._lock.acquire(timeout=silent_s, poll_interval=_POLL_S)
        except Timeout:
            self._wait_on(self._wait_s - silent_s)

    def _wait_on(self, left_s: float) -> None:
        if left_s and isinstance(self._display, Announcer):
            self._display.say(
                f"llmperf: waiting for {self._who()} to end its measurement, for {self._wait_s:g} s at most"
            )
        try:
            self._lock.acquire(timeout=left_s, poll_interval=_POLL_S)
        except Timeout:
            raise BusyError(
                f"{self._who()} has been measuring on this machine for {self._wait_s:g} s;"
                " wait for it or end it (one measurement at a time, or both are wrong)"
            ) from None

    def _who(self) -> str:
        try:
            return self._holder.read_text()
        except OSError:
            return "another process"
