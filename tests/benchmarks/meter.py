"""CPU time of a process and all its descendants, between two moments."""

from __future__ import annotations

import time
from pathlib import Path

_SCHED = 2
"""CPUCLOCK_SCHED of Linux: nanoseconds that all threads of a process have run."""


class Meter:
    """Reads at the first ``start`` and at the last ``stop``; a process that came in between counts whole."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before: dict[int, int] = {}
        self._after: dict[int, int] = {}
        self._from_ns = self._to_ns = 0

    def start(self) -> None:
        if not self._from_ns:
            self._from_ns, self._before = time.monotonic_ns(), _cpu_ns(self._pid)

    def stop(self) -> None:
        self._to_ns, self._after = time.monotonic_ns(), _cpu_ns(self._pid)

    @property
    def cpu_s(self) -> float:
        """Raises RuntimeError when a process was gone at the end: its share is not known."""
        if gone := self._before.keys() - self._after.keys():
            raise RuntimeError(f"{len(gone)} processes of the client ended before the last stream did")
        return sum(after - self._before.get(pid, 0) for pid, after in self._after.items()) / 1e9

    @property
    def wall_s(self) -> float:
        return (self._to_ns - self._from_ns) / 1e9


def _cpu_ns(root: int) -> dict[int, int]:
    found = {}
    for pid in _tree(root):
        try:
            found[pid] = time.clock_gettime_ns(~pid << 3 | _SCHED)
        except OSError:  # just gone
            continue
    return found


def _tree(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    tree = [root]
    for pid in tree:
        tree += children.get(pid, ())
    return tree
