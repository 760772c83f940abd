"""One GPU by NVML: which call answers which fact, newest name first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pytest_llmperf.model.gpu import Fabric, Gpu, Memory, Mode, PowerProfiles, Process, RemappedRows
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.telemetry import processes
from pytest_llmperf.telemetry.nvml.session import Session

# Field numbers that never changed between drivers; those of the throttle counters did, and are not here.
MEMORY_TEMPERATURE = 82
PCIE_REPLAYS = 94
RECOVERY_ACTION = 230
LINK_ERRORS = (161, 162, 163, 208, 215, 219)
"""Replay, recovery and CRC of NVLink 4 and older; received errors, recoveries and effective errors of NVLink 5."""

LINKS = 18
"""The most that a GPU has; the driver ends the list before, with "invalid argument"."""

P2P_KINDS = (0, 1, 2)
"""Read, write, NVLink. The binding's own constant for reading is a tuple, and no call takes it."""

SM, MEM = 1, 2
"""Clocks, by NVML's numbers."""


def describe(nvml: Session, index: int, handle: Any, uuid: str, proc: Path) -> Gpu:
    """All that NVML says of one GPU, but what it says of pairs of them."""

    def get(name: str, *args: Any, change: Callable[[Any], Any] = lambda value: value) -> Reading[Any]:
        return nvml.ask(f"nvmlDeviceGet{name}", handle, *args, change=change)

    return Gpu(
        index=index,
        uuid=uuid,
        name=get("Name"),
        part_number=get("BoardPartNumber"),
        vbios=get("VbiosVersion"),
        bus_id=get("PciInfo", change=lambda info: _string(info.busId)),
        compute_capability=get("CudaComputeCapability", change=_pair),
        gsp_firmware=get("GspFirmwareVersion"),
        bar1_bytes=get("BAR1MemoryInfo", change=lambda info: int(info.bar1Total)),
        memory=_memory(nvml, handle),
        persistence=get("PersistenceMode", change=bool),
        power_limit_mw=get("PowerManagementLimit"),
        power_limit_enforced_mw=get("EnforcedPowerLimit"),
        power_limit_default_mw=get("PowerManagementDefaultLimit"),
        power_limit_range_mw=get("PowerManagementLimitConstraints", change=_pair),
        sm_clock_mhz=get("ClockInfo", SM),
        sm_clock_max_mhz=get("MaxClockInfo", SM),
        memory_clock_mhz=get("ClockInfo", MEM),
        memory_clock_max_mhz=get("MaxClockInfo", MEM),
        application_clocks_mhz=_application_clocks(nvml, handle),
        event_reasons=nvml.first(lambda: get("CurrentClocksEventReasons"), lambda: get("CurrentClocksThrottleReasons")),
        temperature_c=nvml.first(lambda: get("TemperatureV", 0), lambda: get("Temperature", 0)),
        memory_temperature_c=nvml.field(handle, MEMORY_TEMPERATURE),
        margin_c=get("MarginTemperature"),
        slowdown_threshold_c=get("TemperatureThreshold", 1),
        ecc=get("EccMode", change=_mode),
        ecc_uncorrected=ecc_uncorrected(nvml, handle),
        remapped_rows=get("RemappedRows", change=_rows),
        recovery_action=nvml.field(handle, RECOVERY_ACTION),
        mig=get("MigMode", change=_mode),
        compute_mode=get("ComputeMode"),
        processes=_processes(nvml, handle, proc),
        pcie_generation=get("CurrPcieLinkGeneration"),
        pcie_generation_max=get("MaxPcieLinkGeneration"),
        pcie_width=get("CurrPcieLinkWidth"),
        pcie_width_max=get("MaxPcieLinkWidth"),
        pcie_replays=nvml.field(handle, PCIE_REPLAYS),
        nvlinks=(links := _links(nvml, handle)),
        nvlink_errors=_link_errors(nvml, handle, links),
        fabric=_fabric(nvml, handle),
        power_profiles=nvml.fill(
            "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles",
            handle,
            ["c_nvmlWorkloadPowerProfileCurrentProfiles_v1_t"],
            _profiles,
        ),
    )


def peers(nvml: Session, one: Any, other: Any) -> Reading[tuple[int, int, int]]:
    """Whether one GPU may read and write the other's memory, and reach it by NVLink: NVML's status of each."""
    readings = [nvml.ask("nvmlDeviceGetP2PStatus", one, other, kind, change=int) for kind in P2P_KINDS]
    wrong = next((reading for reading in readings if not reading.known), None)
    if wrong is not None:
        return lacking(wrong.answer, wrong.evidence)
    read, write, nvlink = (int(reading.value or 0) for reading in readings)
    return Reading((read, write, nvlink), evidence="nvmlDeviceGetP2PStatus")


def ecc_uncorrected(nvml: Session, handle: Any) -> Reading[int]:
    """Errors of memory that could not be corrected, since the driver was loaded."""
    return nvml.ask("nvmlDeviceGetTotalEccErrors", handle, 1, 0)


def link_errors(nvml: Session, handle: Any) -> Reading[int]:
    """Errors of all NVLinks, since the driver was loaded."""
    return _link_errors(nvml, handle, _links(nvml, handle))


def _memory(nvml: Session, handle: Any) -> Reading[Memory]:
    call = "nvmlDeviceGetMemoryInfo"
    version = getattr(nvml.nvml, "nvmlMemory_v2", None)
    return nvml.first(
        lambda: nvml.ask(
            call,
            handle,
            *([] if version is None else [version]),
            change=lambda info: Memory(total=info.total, used=info.used, reserved=getattr(info, "reserved", None)),
        ),
        lambda: nvml.ask(call, handle, change=lambda info: Memory(total=info.total, used=info.used)),
    )


def _application_clocks(nvml: Session, handle: Any) -> Reading[tuple[int, int]]:
    sm = nvml.ask("nvmlDeviceGetApplicationsClock", handle, SM, change=int)
    memory = nvml.ask("nvmlDeviceGetApplicationsClock", handle, MEM, change=int)
    if sm.value is None or memory.value is None:
        missing = sm if sm.value is None else memory
        return lacking(missing.answer, missing.evidence)
    return Reading((sm.value, memory.value), evidence=sm.evidence)


def _processes(nvml: Session, handle: Any, proc: Path) -> Reading[tuple[Process, ...]]:
    """Those that compute, and those that do through MPS, each once."""
    found = nvml.ask("nvmlDeviceGetComputeRunningProcesses", handle, change=list)
    if found.value is None:
        return lacking(found.answer, found.evidence)
    clients = nvml.ask("nvmlDeviceGetMPSComputeRunningProcesses", handle, change=list)
    unique = {entry.pid: entry.usedGpuMemory for entry in [*(clients.value or []), *found.value]}
    described = (processes.describe(pid, memory, proc) for pid, memory in sorted(unique.items()))
    return Reading(tuple(described), evidence=found.evidence)


def _links(nvml: Session, handle: Any) -> Reading[tuple[int, ...]]:
    states: list[int] = []
    for link in range(LINKS):
        reading = nvml.ask("nvmlDeviceGetNvLinkState", handle, link, change=int)
        if reading.value is None:
            if not states or reading.answer is Answer.FAILED:
                return lacking(reading.answer, reading.evidence)
            break
        states.append(reading.value)
    return Reading(tuple(states), evidence="nvmlDeviceGetNvLinkState")


def _link_errors(nvml: Session, handle: Any, links: Reading[tuple[int, ...]]) -> Reading[int]:
    if links.value is None:
        return lacking(links.answer, links.evidence)
    asked = [(number, link) for link in range(len(links.value)) for number in LINK_ERRORS]
    counts = nvml.fields(handle, asked)
    known = [count.value for count in counts if count.value is not None]
    if not known:
        return lacking(counts[0].answer, counts[0].evidence)
    return Reading(sum(known), evidence=f"NVML fields {', '.join(map(str, LINK_ERRORS))} of {len(links.value)} links")


def _fabric(nvml: Session, handle: Any) -> Reading[Fabric]:
    reading = nvml.fill(
        "nvmlDeviceGetGpuFabricInfoV",
        handle,
        ["c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t"],
        lambda info: Fabric(
            state=info.state,
            status=info.status,
            health_mask=info.healthMask,
            health_summary=getattr(info, "healthSummary", None),
        ),
    )
    if reading.value is not None and reading.value.state == 0:
        return lacking(Answer.UNSUPPORTED, f"{reading.evidence}: state 0, not supported")
    return reading


def _profiles(info: Any) -> PowerProfiles:
    return PowerProfiles(
        requested=tuple(_bits(info.requestedProfilesMask.mask)), enforced=tuple(_bits(info.enforcedProfilesMask.mask))
    )


def _bits(words: Any) -> Iterator[int]:
    for number, word in enumerate(words):
        yield from (32 * number + bit for bit in range(32) if word >> bit & 1)


def _rows(answer: Any) -> RemappedRows:
    correctable, uncorrectable, pending, failed = answer
    return RemappedRows(
        correctable=correctable, uncorrectable=uncorrectable, pending=bool(pending), failed=bool(failed)
    )


def _mode(answer: Any) -> Mode:
    current, pending = answer
    return Mode(current=bool(current), pending=bool(pending))


def _pair(answer: Any) -> tuple[int, int]:
    first, second = answer
    return int(first), int(second)


def _string(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
