"""GPU leases: which GPUs this machine has, and which of them are ours for now."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.errors import BusyError, UnavailableError
from pytest_llmperf.leases.folder import lease_folder

WAIT_S = 2 * 3600.0
"""How long to wait for GPUs that others of this user lease."""

_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU as NVML names it."""

    index: int
    uuid: str
    name: str


def find() -> tuple[Gpu, ...]:
    """The GPUs of this machine in NVML's order; () without NVML (no driver, no ``nvidia-ml-py``)."""
    try:
        import pynvml  # noqa: PLC0415 (optional)
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(_describe(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError:  # a GPU that fell off the bus: none that can be trusted
        return ()
    finally:
        pynvml.nvmlShutdown()


def names() -> tuple[str, ...]:
    """Product names of the GPUs of this machine."""
    return tuple(gpu.name for gpu in find())


class GpuLease:
    """GPUs that no other lease of this user holds; a context that gives them back. The kernel does when we die."""

    def __init__(self, gpus: tuple[Gpu, ...], locks: ExitStack) -> None:
        self.gpus = gpus
        self._locks = locks

    @classmethod
    def take(
        cls,
        count: int,
        *,
        wait_s: float = WAIT_S,
        present: tuple[Gpu, ...] | None = None,
        folder: Path | None = None,
        clock: Clock = CLOCK,
    ) -> GpuLease:
        """Lease ``count`` GPUs at once or none; waits for GPUs that are leased.

        Args:
            count: how many; 0 asks nobody.
            wait_s: how long to wait.
            present: the GPUs to choose from; None for those of this machine.
            folder: of the lock files; None for the user's own on this machine.
            clock: for the wait.

        Raises:
            UnavailableError: this machine has fewer.
            BusyError: they were not free within ``wait_s``.
        """
        if not count:
            return cls((), ExitStack())
        gpus = find() if present is None else present
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
    def _try(cls, count: int, gpus: tuple[Gpu, ...], folder: Path) -> GpuLease | None:
        """All or none, so that two takers cannot wait for each other's half."""
        taken: list[Gpu] = []
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


def _describe(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    return Gpu(index, _text(nvml.nvmlDeviceGetUUID(handle)), _text(nvml.nvmlDeviceGetName(handle)))


def _text(value: str | bytes) -> str:
    """Old bindings answer in bytes."""
    return value.decode() if isinstance(value, bytes) else value
