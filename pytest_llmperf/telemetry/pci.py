"""PCI devices as the kernel shows them: where a GPU is, and which bridges send its traffic a longer way."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.telemetry.kernel_file import listed, parsed

SYS = Path("/sys")


def numa_node(bus_id: str, sys: Path = SYS) -> Reading[int]:
    """The NUMA node of a PCI device by NVML's bus id; unsupported where the firmware names none (-1)."""
    address = re.sub(r"^0000(?=[0-9a-f]{4}:)", "", bus_id.lower())
    node = parsed(sys / "bus/pci/devices" / address / "numa_node", int)
    return lacking(Answer.UNSUPPORTED, f"{node.evidence}: -1") if node.value is not None and node.value < 0 else node


_ACS, _ACS_CONTROL, _SOURCE_VALIDATION = 0x000D, 6, 1


def acs(sys: Path = SYS) -> Reading[tuple[str, ...]]:
    """Bridges with ACS source validation, from their extended configuration, which only root can read."""
    folder = sys / "bus/pci/devices"
    devices = listed(folder)
    if devices.value is None:
        return lacking(devices.answer, devices.evidence)
    on: list[str] = []
    for device in devices.value:
        kind = parsed(device / "class", lambda text: int(text, 16) >> 8)
        if kind.value != 0x0604:  # noqa: PLR2004 (PCI-to-PCI bridge)
            continue
        try:
            control = _acs_control((device / "config").read_bytes())
        except (OSError, PermissionError):
            return lacking(Answer.NOT_PERMITTED, f"{device}/config: needs root")
        if control is not None and control & _SOURCE_VALIDATION:
            on.append(device.name)
    return Reading(tuple(on), evidence=f"{folder}/*/config")


def _acs_control(config: bytes) -> int | None:
    """The control register of the ACS capability; None without one.

    Raises:
        PermissionError: the extended part was not given.
    """
    if len(config) <= 0x100:  # noqa: PLR2004 (the part that everybody may read)
        raise PermissionError
    at, seen = 0x100, set[int]()
    while at and at not in seen and at + 8 <= len(config):
        seen.add(at)
        header = int.from_bytes(config[at : at + 4], "little")
        if header & 0xFFFF == _ACS:
            return int.from_bytes(config[at + _ACS_CONTROL : at + _ACS_CONTROL + 2], "little")
        at = header >> 20
    return None
