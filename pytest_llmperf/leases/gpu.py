"""GPU leases: which of this machine's GPUs are ours for now."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.errors import BusyError, UnavailableError
from pytest_llmperf.leases.folder import lease_folder
from pytest_llmperf.model.gpu import NamedGpu

WAIT_S = 2 * 3600.0
"""How long to wait for GPUs that others of this user lease."""

_POLL_S = 0.5


class GpuLease:
    """GPUs that no other lease of this user holds; a context that gives them back. The kernel does when we die."""

    def __init__(self, gpus: tuple[NamedGpu, ...], locks: ExitStack) -> None:
        self.gpus = gpus
        self._locks = locks

    @classmethod
    def take(
        cls,
        count: int,
        find: Callable[[], tuple[NamedGpu, ...]],
        *,
        wait_s: float = WAIT_S,
        folder: Path | None = None,
        clock: Clock = CLOCK,
    ) -> GpuLease:
        """Lease ``count`` GPUs at once or none; waits for GPUs that are leased.

        Args:
            count: how many; 0 asks nobody.
            find: the GPUs to choose from: ``telemetry.nvml.find`` for this machine's.
            wait_s: how long to wait.
            folder: of the lock files; None for the user's own on this machine.
            clock: for the wait.

        Raises:
            UnavailableError: this machine has fewer.
            BusyError: they were not free within ``wait_s``.
        """
        if not count:
            return cls((), ExitStack())
        gpus = find()
        if len(gpus) < count:
            raise UnavailableError(f"needs {count} GPU{'s' * (count != 1)}; this machine has {len(gpus)}")
        deadline = clock.monotonic_ns() + wait_s * 1e9
        while (lease := cls._try(count, gpus, folder or lease_folder())) is None:
            if clock.monotonic_ns() >= deadline:
                raise BusyError(f"fewer than {count} of {len(gpus)} GPUs became free within {wait_s:g} s")
            clock.sleep(_POLL_S)
        return lease

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._locks.close()

    @classmethod
    def _try(cls, count: int, gpus: tuple[NamedGpu, ...], folder: Path) -> GpuLease | None:
        """All or none, so that two takers cannot wait for each other's half."""
        taken: list[NamedGpu] = []
        with ExitStack() as locks:
            for gpu in gpus:
                lock = FileLock(folder / f"{gpu.uuid}.lock")
                try:
                    locks.enter_context(lock.acquire(timeout=0))
                except Timeout:
                    continue
                taken.append(gpu)
                if len(taken) == count:
                    return cls(tuple(taken), locks.pop_all())
        return None
