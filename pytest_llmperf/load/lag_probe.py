"""The lag probe: how late the event loop wakes up, measured the way a socket would see it."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import time
from array import array

PERIOD_NS = 9_700_000
"""Not 10 ms: beside an engine that sends every 10 or 20 ms the probe would always wake up at the same point of its
step, just before the burst that keeps the loop busy or just after it, and see no lag at all."""

_ABSOLUTE = 1
_NANOSECONDS = 1_000_000_000


class LagProbe:
    """A kernel timer, due every ``PERIOD_NS``, that the loop polls beside its sockets.

    The loop's own timers are rounded to milliseconds, which would drown what is measured. A stall of the loop counts
    once for each time that was due in it.

    Attributes:
        lags_ns: read minus due, one for each due time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.lags_ns = array("q")
        self._loop = loop
        self._due_ns = 0
        self._fd = -1

    def start(self) -> None:
        """Begin; the first time is due in one period."""
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        self._due_ns = time.monotonic_ns() + PERIOD_NS
        timing = struct.pack("@4l", 0, PERIOD_NS, *divmod(self._due_ns, _NANOSECONDS))
        if self._fd < 0 or libc.timerfd_settime(self._fd, _ABSOLUTE, timing, None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd")
        self._loop.add_reader(self._fd, self._on_time)

    def stop(self) -> None:
        """End; ``lags_ns`` stays."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _on_time(self) -> None:
        now = time.monotonic_ns()
        try:
            (expired,) = struct.unpack("@Q", os.read(self._fd, 8))
        except BlockingIOError:
            return
        for _ in range(expired):
            self.lags_ns.append(now - self._due_ns)
            self._due_ns += PERIOD_NS
