"""The whole machine as a snapshot: NVML, nvidia-smi and the kernel's files together. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.model.gpu import Gpu, Vboost
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.telemetry import hostfacts, nvml, pci, smi
from pytest_llmperf.telemetry.hostfacts import ROOTS, Roots

IDLE_S = 2.0
"""For how long utilisation is watched before anything of ours runs; the driver averages over up to a second."""

SETTLE_S = 10.0
"""Persistence mode can read off just after a machine has started, until its daemon is there."""


def read(
    *,
    roots: Roots = ROOTS,
    pid: int | None = None,
    idle_s: float = IDLE_S,
    settle_s: float = SETTLE_S,
    clock: Clock = CLOCK,
) -> Snapshot:
    """Read this machine once: in ``idle_s`` and about a second where there are GPUs, in milliseconds without.

    Args:
        roots: of the kernel's files.
        pid: the engine's process, whose environment counts; None for ours.
        idle_s: how long the GPUs' utilisation is watched; its largest value counts.
        settle_s: after which persistence mode is asked for again where it is off; 0 for not at all.
        clock: for the date, and to wait.
    """
    found = nvml.read(idle_s=idle_s, proc=roots.proc, clock=clock)
    if settle_s and any(gpu.persistence.value is False for gpu in found.gpus):
        clock.sleep(settle_s)
        found = nvml.read(idle_s=idle_s, proc=roots.proc, clock=clock)
    return Snapshot(
        taken=clock.utc_now().isoformat(timespec="seconds"),
        origin="live",
        host=hostfacts.read(roots=roots, pid=pid, clock=clock),
        gpus=_completed(found.gpus, roots) if found.gpus else (),
        driver=found.driver,
        cuda=found.cuda,
        confidential_compute=found.confidential_compute,
    )


def _completed(gpus: tuple[Gpu, ...], roots: Roots) -> tuple[Gpu, ...]:
    """The GPUs with what NVML does not say: two calls of nvidia-smi, and a file of the kernel each."""
    sliders, smoothing = smi.vboost(), smi.power_smoothing()
    return tuple(
        replace(
            gpu,
            vboost=_of(sliders, gpu.index),
            power_smoothing=_smoothing(smoothing, gpu),
            numa_node=_numa_node(gpu, roots),
        )
        for gpu in gpus
    )


def _of(sliders: Reading[Mapping[int, Vboost]], index: int) -> Reading[Vboost]:
    if sliders.value is None:
        return lacking(sliders.answer, sliders.evidence)
    if index not in sliders.value:
        return lacking(Answer.UNSUPPORTED, f"{sliders.evidence}: no row for GPU {index}")
    return Reading(sliders.value[index], evidence=sliders.evidence)


def _smoothing(smoothing: Reading[Mapping[str, Reading[bool]]], gpu: Gpu) -> Reading[bool]:
    if smoothing.value is None:
        return lacking(smoothing.answer, smoothing.evidence)
    unnamed: Reading[bool] = lacking(Answer.UNKNOWN, f"{smoothing.evidence}: no GPU {gpu.bus_id.value}")
    return smoothing.value.get((gpu.bus_id.value or "").lower(), unnamed)


def _numa_node(gpu: Gpu, roots: Roots) -> Reading[int]:
    if gpu.bus_id.value is None:
        return lacking(gpu.bus_id.answer, gpu.bus_id.evidence)
    return pci.numa_node(gpu.bus_id.value, roots.sys)
