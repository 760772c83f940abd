"""Who came while we measured: processes that were not there at the start, and memory that nobody of ours holds."""

from __future__ import annotations

from collections.abc import Collection

from pytest_llmperf.checks.gpu_use import named
from pytest_llmperf.checks.group import finding, judged, name, ordered
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gpu import Gpu
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.model.telemetry import Telemetry

MEMORY_SHARE = 0.01
"""Of a GPU's memory, by which what nobody of ours holds may grow."""

_REMEDY = "keep others off these GPUs while they are leased"


def foreign_processes(telemetry: Telemetry, own: Collection[int], allow: Collection[str]) -> Finding:
    """Processes that appeared within the window, and are neither the engine's nor allowed.

    Those that were there before it were judged then. One of another namespace can be the engine's own.
    """
    before = {gpu.uuid: gpu for gpu in _gpus(telemetry.before)}
    here: list[str] = []
    hidden: list[str] = []
    for gpu in ordered(telemetry):
        known = before[gpu.uuid].processes.value or () if gpu.uuid in before else ()
        settled = {*own, *(each.pid for each in known)}
        for each in sorted(gpu.processes, key=lambda process: process.pid):
            if each.pid in settled or each.name.rpartition("/")[2] in allow:
                continue
            line = f"{name(gpu)}: {named(each)}"
            (here if each.here else hidden).append(line)
    if hidden and not here:
        value = f"unattributable: {'; '.join(hidden)}"
        return finding("foreign_processes", Status.UNKNOWN, value, expected="nobody came")
    return judged("foreign_processes", here, expected="nobody came", remedy=_REMEDY)


def memory_growth(telemetry: Telemetry, own: Collection[int]) -> Finding:
    """Memory beside the engine's that grew; not applicable where the driver does not say what each process holds."""
    after = {gpu.uuid: gpu for gpu in _gpus(telemetry.after)}
    words: list[str] = []
    known = False
    for gpu in sorted(_gpus(telemetry.before), key=lambda each: (each.index, each.uuid)):
        then, now = _beside(gpu, own), _beside(after[gpu.uuid], own) if gpu.uuid in after else None
        if then is None or now is None or gpu.memory.value is None:
            continue
        known = True
        if now - then > MEMORY_SHARE * gpu.memory.value.total:
            words.append(f"{gpu.uuid}: {(now - then) / 2**20:.0f} MiB more")
    if not known:
        return finding("memory_growth", Status.NOT_APPLICABLE, "not known before and after")
    return judged("memory_growth", words, expected=f"at most {MEMORY_SHARE:.0%} of a GPU", remedy=_REMEDY)


def _beside(gpu: Gpu, own: Collection[int]) -> int | None:
    """Bytes in use that the engine does not hold; None where that cannot be told apart."""
    memory, processes = gpu.memory.value, gpu.processes.value
    if memory is None or processes is None:
        return None
    ours = [each.memory_bytes for each in processes if each.pid in own]
    if None in ours or (own and not ours):
        return None
    return memory.used - sum(size for size in ours if size is not None)


def _gpus(snapshot: Snapshot | None) -> tuple[Gpu, ...]:
    return () if snapshot is None else snapshot.gpus
