"""What GPUs have counted since the driver was loaded: read before a measured window and after it, never in it.

Throttle counters come from nvidia-smi, which names them: their numbers in NVML changed between drivers, and a wrong
number can be another thing's counter. Where it does not have them, two numbers that never changed stand in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.model.telemetry import Counters
from pytest_llmperf.telemetry import smi
from pytest_llmperf.telemetry.nvml.device import PCIE_REPLAYS, ecc_uncorrected, link_errors
from pytest_llmperf.telemetry.nvml.session import Session, session

POWER_CAP, SW_THERMAL, SYNC_BOOST = 74, 75, 76
"""Nanoseconds; the numbers are those of all drivers from 535 to 615."""


def read() -> Mapping[str, Counters]:
    """The counters of every GPU by uuid; empty without NVML."""
    with session() as nvml:
        if isinstance(nvml, Reading):
            return {}
        named = smi.throttle_counters()
        found: dict[str, Counters] = {}
        for index in range(nvml.ask("nvmlDeviceGetCount", change=int).value or 0):
            handle: Reading[Any] = nvml.ask("nvmlDeviceGetHandleByIndex", index)
            uuid = nvml.ask("nvmlDeviceGetUUID", handle.value, change=str).value if handle.known else None
            if uuid is not None:
                found[uuid] = _counters(nvml, handle.value, uuid, named)
        return found


def _counters(nvml: Session, handle: Any, uuid: str, named: Reading[Mapping[str, Mapping[str, int]]]) -> Counters:
    energy: Reading[int] = nvml.ask("nvmlDeviceGetTotalEnergyConsumption", handle)
    throttles = (named.value or {}).get(uuid)
    if throttles:
        read = {name: _named(name, throttles, named.evidence) for name in smi.COUNTERS}
        source = "nvidia-smi: clocks_event_reasons_counters"
    else:
        evidence = named.evidence if named.value is None else f"{named.evidence}: not for {uuid}"
        read = dict.fromkeys(smi.COUNTERS, lacking(Answer.UNSUPPORTED, evidence))
        read |= {"power_cap_ns": nvml.field(handle, POWER_CAP), "sw_thermal_ns": nvml.field(handle, SW_THERMAL)}
        source = f"NVML fields {POWER_CAP} and {SW_THERMAL}"
    return Counters(
        power_cap_ns=read["power_cap_ns"],
        sw_thermal_ns=read["sw_thermal_ns"],
        hw_thermal_ns=read["hw_thermal_ns"],
        power_brake_ns=read["power_brake_ns"],
        sync_boost_ns=nvml.field(handle, SYNC_BOOST),
        energy_mj=energy,
        ecc_uncorrected=ecc_uncorrected(nvml, handle),
        nvlink_errors=link_errors(nvml, handle),
        pcie_replays=nvml.field(handle, PCIE_REPLAYS),
        source=source,
    )


def _named(name: str, throttles: Mapping[str, int], evidence: str) -> Reading[int]:
    if name not in throttles:
        return lacking(Answer.UNSUPPORTED, f"{evidence}: no {smi.COUNTERS[name]}")
    return Reading(throttles[name], evidence=evidence)
