"""Which GPUs this machine has: the short question, where nothing else about them matters."""

from __future__ import annotations

from pytest_llmperf.model.gpu import NamedGpu
from pytest_llmperf.model.reading import Reading
from pytest_llmperf.telemetry.nvml.session import Session, session


def find() -> tuple[NamedGpu, ...]:
    """The GPUs that answer with their names, in NVML's order; () without bindings, library or driver."""
    with session() as nvml:
        if isinstance(nvml, Reading):
            return ()
        count = nvml.ask("nvmlDeviceGetCount", change=int).value or 0
        return tuple(gpu for index in range(count) if (gpu := _named(nvml, index)) is not None)


def names() -> tuple[str, ...]:
    """Product names of the GPUs of this machine."""
    return tuple(gpu.name for gpu in find())


def _named(nvml: Session, index: int) -> NamedGpu | None:
    handle: Reading[object] = nvml.ask("nvmlDeviceGetHandleByIndex", index)
    if not handle.known:
        return None
    uuid = nvml.ask("nvmlDeviceGetUUID", handle.value, change=str).value
    name = nvml.ask("nvmlDeviceGetName", handle.value, change=str).value
    return None if uuid is None or name is None else NamedGpu(index, uuid, name)
