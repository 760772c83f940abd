"""Telemetry: what a machine did while a window was measured, as raw samples and counters; nothing here is judged."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_llmperf.model.gpu import Process
from pytest_llmperf.model.host_facts import Xid
from pytest_llmperf.model.reading import NOT_READ, Reading
from pytest_llmperf.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at one GPU; None where it did not answer.

    Attributes:
        tick: number of the look by the sampler's schedule; one that was missed leaves its number out.
        at_ns: CLOCK_MONOTONIC, when it was asked.
        event_reasons: bits of ``EventReason``.
        power_mw: at that instant, not the driver's average of a second.
    """

    tick: int
    at_ns: int
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_mw: int | None = None
    temperature_c: int | None = None
    memory_temperature_c: int | None = None
    event_reasons: int | None = None
    utilisation_percent: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What a GPU has counted since the driver was loaded; they miss nothing that happens between samples.

    Attributes:
        power_cap_ns: time under the software power cap; ``sw_thermal_ns`` and so on alike.
        energy_mj: millijoules.
        source: who says so (field numbers, or names of nvidia-smi), as evidence.
    """

    power_cap_ns: Reading[int] = NOT_READ
    sw_thermal_ns: Reading[int] = NOT_READ
    hw_thermal_ns: Reading[int] = NOT_READ
    power_brake_ns: Reading[int] = NOT_READ
    sync_boost_ns: Reading[int] = NOT_READ
    energy_mj: Reading[int] = NOT_READ
    ecc_uncorrected: Reading[int] = NOT_READ
    nvlink_errors: Reading[int] = NOT_READ
    pcie_replays: Reading[int] = NOT_READ
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSeries:
    """One GPU over the window.

    Attributes:
        node: the host that it is in.
        samples: within the window, in order of time.
        processes: all that were seen on it within the window.
        xids: error reports of the driver that came within the window.
        lost: what the driver said when it stopped answering, "" while it did not.
    """

    uuid: str
    node: str = ""
    samples: tuple[Sample, ...] = ()
    before: Counters = Counters()
    after: Counters = Counters()
    processes: tuple[Process, ...] = ()
    xids: tuple[Xid, ...] = ()
    lost: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """All GPUs of a case over its measured window, warm-up excluded.

    Attributes:
        window_ns: its start and end, CLOCK_MONOTONIC.
        interval_ns: how often each GPU was to be asked.
        ticks: the first look within the window and the first one after it: so many samples each GPU should have.
        gpus: in any order.
        before: the machine at the start of the window; its processes and settings are compared with ``after``'s.
    """

    window_ns: tuple[int, int]
    interval_ns: int
    ticks: tuple[int, int]
    gpus: tuple[GpuSeries, ...] = ()
    before: Snapshot | None = None
    after: Snapshot | None = None
