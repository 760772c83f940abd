"""All GPUs of this machine, or the reason why there are none, within a bound."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.model.gpu import Gpu
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.telemetry.nvml.device import describe, peers
from pytest_llmperf.telemetry.nvml.session import Session, session

TIMEOUT_S = 60.0
"""Of all questions to NVML; eight GPUs take about a second. A driver that hangs does not answer at all."""

POLL_S = 0.2

PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """What NVML says of a machine.

    Attributes:
        driver: its version; where there is no NVML, why, and everything else has the same reason.
    """

    driver: Reading[str]
    cuda: Reading[int]
    confidential_compute: Reading[bool]
    gpus: tuple[Gpu, ...] = ()


def read(*, idle_s: float = 0.0, timeout_s: float = TIMEOUT_S, proc: Path = PROC, clock: Clock = CLOCK) -> Gpus:
    """Read everything once.

    Args:
        idle_s: for how long utilisation is watched; its largest value counts.
        timeout_s: beyond it, the driver is unknown and the thread that asks it is left behind.
        proc: where the kernel's files on processes are.
        clock: to wait between looks at utilisation.
    """
    found: list[Gpus] = []
    thread = threading.Thread(target=lambda: found.append(_read(idle_s, proc, clock)), daemon=True, name="nvml")
    thread.start()
    thread.join(timeout_s + idle_s)
    return found[0] if found else _without(lacking(Answer.UNKNOWN, f"NVML: no answer within {timeout_s:g} s"))


def _without(reason: Reading[Any]) -> Gpus:
    return Gpus(driver=reason, cuda=reason, confidential_compute=reason)


def _read(idle_s: float, proc: Path, clock: Clock) -> Gpus:
    with session() as nvml:
        if isinstance(nvml, Reading):
            return _without(nvml)
        count = nvml.ask("nvmlDeviceGetCount", change=int)
        if count.value is None:
            return _without(count)
        return Gpus(
            driver=nvml.ask("nvmlSystemGetDriverVersion"),
            cuda=nvml.ask("nvmlSystemGetCudaDriverVersion"),
            confidential_compute=nvml.ask("nvmlSystemGetConfComputeState", change=lambda state: bool(state.ccFeature)),
            gpus=_gpus(nvml, count.value, idle_s, proc, clock),
        )


def _gpus(nvml: Session, count: int, idle_s: float, proc: Path, clock: Clock) -> tuple[Gpu, ...]:
    handles: dict[str, Any] = {}
    gpus: list[Gpu] = []
    for index in range(count):
        handle: Reading[Any] = nvml.ask("nvmlDeviceGetHandleByIndex", index)
        uuid = nvml.ask("nvmlDeviceGetUUID", handle.value, change=str) if handle.known else handle
        if uuid.value is None:  # it fell off the bus: all that is known of it is that, and it must not disappear
            gpus.append(_lost(index, uuid))
            continue
        handles[uuid.value] = handle.value
        gpus.append(describe(nvml, index, handle.value, uuid.value, proc))
    busiest = _busiest(nvml, handles, idle_s, clock)
    return tuple(
        replace(
            gpu,
            p2p=_peers(nvml, gpu.uuid, handles),
            utilisation_percent=busiest.get(gpu.uuid, gpu.utilisation_percent),
        )
        for gpu in gpus
    )


def _busiest(nvml: Session, handles: dict[str, Any], idle_s: float, clock: Clock) -> dict[str, Reading[int]]:
    """The largest utilisation of each GPU in ``idle_s``; what it says at any moment is the mean of up to a second."""
    found: dict[str, Reading[int]] = {}
    for look in range(1 + round(idle_s / POLL_S)):
        if look:
            clock.sleep(POLL_S)
        for uuid, handle in handles.items():
            now = nvml.ask("nvmlDeviceGetUtilizationRates", handle, change=lambda rates: int(rates.gpu))
            before = found.get(uuid, now)
            found[uuid] = now if before.value is None or (now.value or 0) > before.value else before
    return found


def _peers(nvml: Session, uuid: str, handles: dict[str, Any]) -> dict[str, Reading[tuple[int, int, int]]]:
    if uuid not in handles:
        return {}
    return {other: peers(nvml, handles[uuid], handle) for other, handle in handles.items() if other != uuid}


def _lost(index: int, reason: Reading[Any]) -> Gpu:
    """A GPU of which every reading is the reason why it has no name."""
    said: Reading[Any] = lacking(reason.answer, reason.evidence)
    bare = Gpu(index=index, uuid=f"unnamed-{index}")
    readings: dict[str, Any] = {name: said for name in bare.__slots__ if isinstance(getattr(bare, name), Reading)}
    return replace(bare, **readings)
