"""A GPU as NVML describes it at one moment: one reading per fact, in NVML's own units and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag

from pytest_llmperf.model.reading import NOT_READ, Reading


class EventReason(IntFlag):
    """Why the clocks are not higher: ``nvmlClocksEventReason*``. Other bits are kept, and shown in hex."""

    IDLE = 0x1
    CLOCK_SETTING = 0x2
    """Application or locked clocks."""
    SW_POWER_CAP = 0x4
    HW_SLOWDOWN = 0x8
    SYNC_BOOST = 0x10
    SW_THERMAL = 0x20
    HW_THERMAL = 0x40
    HW_POWER_BRAKE = 0x80
    DISPLAY = 0x100
    BOARD_LIMIT = 0x200
    RELIABILITY = 0x400


@dataclass(frozen=True, slots=True)
class NamedGpu:
    """A GPU as one asks for it: which it is, and what."""

    index: int
    uuid: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A mode that changes at the next reset or reboot: what holds now, and what will."""

    current: bool
    pending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes of device memory.

    Attributes:
        used: what processes hold; without ``reserved`` where the driver tells them apart.
        reserved: what the driver keeps for itself; None where it is part of ``used``.
    """

    total: int
    used: int
    reserved: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemappedRows:
    """Rows of memory that were replaced; ``correctable`` ones alone are healthy."""

    correctable: int
    uncorrectable: int
    pending: bool
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """Registration with the NVLink fabric.

    Attributes:
        state: 1 not started, 2 in progress, 3 completed (0, not supported, is a reading without a value).
        status: NVML's return code of the registration, 0 for success.
        health_mask: two to four bits a topic; 1 in a topic is bad, 2 is good, 0 not known.
        health_summary: 0 not supported, 1 healthy, 2 unhealthy, 3 limited; None where the driver is too old to say.
    """

    state: int
    status: int
    health_mask: int = 0
    health_summary: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vboost:
    """Position of the boost slider that ``nvidia-smi boost-slider`` shows."""

    current: int
    maximum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerProfiles:
    """Workload power profiles by number (6 is LLM_INFERENCE): asked for, and in force."""

    requested: tuple[int, ...]
    enforced: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that holds a context on a GPU.

    Attributes:
        memory_bytes: of this GPU; None where the driver does not say.
        name: of the executable, "" where it is not known.
        user: who runs it, "" where it is not known.
        here: whether it is a process of this machine as we see it. In a container the driver tells the host's numbers:
            such a process can be nobody's we know, and it is not therefore a stranger's.
    """

    pid: int
    memory_bytes: int | None = None
    name: str = ""
    user: str = ""
    here: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU.

    Attributes:
        index: NVML's; CUDA may number otherwise, so join by ``uuid``.
        name: product ("NVIDIA H200").
        compute_capability: major and minor.
        power_limit_range_mw: what the limit may be set to.
        application_clocks_mhz: of SM and memory; error 26 on drivers that have given them up.
        event_reasons: bits of ``EventReason`` now.
        margin_c: degrees below the temperature at which it slows down.
        slowdown_threshold_c: that temperature, on drivers that say it.
        ecc_uncorrected: errors since the driver was loaded.
        recovery_action: 0 none, 1 reset, 2 reboot, 3 drain, 4 drain and reset.
        compute_mode: 0 default, 1 and 3 exclusive, 2 prohibited.
        utilisation_percent: the largest value in the time before the reading.
        nvlinks: state of each link: 0 inactive, 1 active, 3 active with traffic disabled.
        nvlink_errors: replay, recovery and CRC errors of all links, since the driver was loaded.
        p2p: by the other GPU's uuid: status of reading, writing and NVLink (0 is OK).
        power_smoothing: whether ramps of power are limited.
        numa_node: of the PCI device.
    """

    index: int
    uuid: str
    name: Reading[str] = NOT_READ
    part_number: Reading[str] = NOT_READ
    vbios: Reading[str] = NOT_READ
    bus_id: Reading[str] = NOT_READ
    compute_capability: Reading[tuple[int, int]] = NOT_READ
    gsp_firmware: Reading[str] = NOT_READ
    bar1_bytes: Reading[int] = NOT_READ
    memory: Reading[Memory] = NOT_READ
    persistence: Reading[bool] = NOT_READ
    power_limit_mw: Reading[int] = NOT_READ
    power_limit_enforced_mw: Reading[int] = NOT_READ
    power_limit_default_mw: Reading[int] = NOT_READ
    power_limit_range_mw: Reading[tuple[int, int]] = NOT_READ
    sm_clock_mhz: Reading[int] = NOT_READ
    sm_clock_max_mhz: Reading[int] = NOT_READ
    memory_clock_mhz: Reading[int] = NOT_READ
    memory_clock_max_mhz: Reading[int] = NOT_READ
    application_clocks_mhz: Reading[tuple[int, int]] = NOT_READ
    event_reasons: Reading[int] = NOT_READ
    temperature_c: Reading[int] = NOT_READ
    memory_temperature_c: Reading[int] = NOT_READ
    margin_c: Reading[int] = NOT_READ
    slowdown_threshold_c: Reading[int] = NOT_READ
    ecc: Reading[Mode] = NOT_READ
    ecc_uncorrected: Reading[int] = NOT_READ
    remapped_rows: Reading[RemappedRows] = NOT_READ
    recovery_action: Reading[int] = NOT_READ
    mig: Reading[Mode] = NOT_READ
    compute_mode: Reading[int] = NOT_READ
    processes: Reading[tuple[Process, ...]] = NOT_READ
    utilisation_percent: Reading[int] = NOT_READ
    pcie_generation: Reading[int] = NOT_READ
    pcie_generation_max: Reading[int] = NOT_READ
    pcie_width: Reading[int] = NOT_READ
    pcie_width_max: Reading[int] = NOT_READ
    pcie_replays: Reading[int] = NOT_READ
    nvlinks: Reading[tuple[int, ...]] = NOT_READ
    nvlink_errors: Reading[int] = NOT_READ
    fabric: Reading[Fabric] = NOT_READ
    p2p: Mapping[str, Reading[tuple[int, int, int]]] = field(default_factory=dict)
    power_profiles: Reading[PowerProfiles] = NOT_READ
    power_smoothing: Reading[bool] = NOT_READ
    vboost: Reading[Vboost] = NOT_READ
    numa_node: Reading[int] = NOT_READ

    def __str__(self) -> str:
        return f"GPU {self.index} ({self.uuid})"
