"""What the sampler, nvidia-smi and two looks at the machine have seen, put together as the telemetry of one window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pytest_llmperf.model.gpu import Gpu
from pytest_llmperf.model.host_facts import Xid
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.model.telemetry import Counters, GpuSeries, Telemetry
from pytest_llmperf.telemetry.counters import BY_NAME
from pytest_llmperf.telemetry.nvml import throttle
from pytest_llmperf.telemetry.nvml.throttle import Family
from pytest_llmperf.telemetry.samples_file import Counted, Sampled, Seen
from pytest_llmperf.telemetry.smi import COUNTERS

_SLACK_S = 1.0
"""The kernel log's stamps are those of another clock than ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The machine once, outside the window; ``at_ns`` is CLOCK_MONOTONIC, ``counters`` are by uuid."""

    at_ns: int
    snapshot: Snapshot
    counters: Mapping[str, Counters] = field(default_factory=dict)

    def of(self, uuid: str) -> Gpu | None:
        """One GPU of it."""
        return next((gpu for gpu in self.snapshot.gpus if gpu.uuid == uuid), None)

    def named(self, uuid: str) -> dict[str, int]:
        """Throttle counters of a GPU as nvidia-smi names them; {} where it does not."""
        counters = self.counters.get(uuid, Counters())
        if counters.source != BY_NAME:
            return {}
        readings: dict[str, Reading[int]] = {name: getattr(counters, name) for name in COUNTERS}
        return {name: reading.value for name, reading in readings.items() if reading.value is not None}


def assemble(sampled: Sampled, *, window_ns: tuple[int, int], interval_ns: int, before: Look, after: Look) -> Telemetry:
    """The telemetry of a window; samples of before and after it are left out."""
    ticks = _ticks(sampled.origin_ns, window_ns, interval_ns)
    family = throttle.calibrated(
        (look.named(uuid), counted.fields)
        for uuid, seen in sampled.gpus.items()
        for look, counted in ((before, seen.before), (after, seen.after))
        if counted.fields
    )
    return Telemetry(
        window_ns=window_ns,
        interval_ns=interval_ns,
        ticks=ticks,
        gpus=tuple(_series(uuid, seen, ticks, before, after, family) for uuid, seen in sampled.gpus.items()),
        before=before.snapshot.of(sampled.gpus.keys()),
        after=after.snapshot.of(sampled.gpus.keys()),
    )


def _ticks(origin_ns: int | None, window_ns: tuple[int, int], interval_ns: int) -> tuple[int, int]:
    """The ticks that were due within the window; from its start where sampling never began."""
    begin, end = (at - (window_ns[0] if origin_ns is None else origin_ns) for at in window_ns)
    return max(-(-begin // interval_ns), 0), max(-(-end // interval_ns), 0)


def _series(
    uuid: str, seen: Seen, ticks: tuple[int, int], before: Look, after: Look, family: Family | None
) -> GpuSeries:
    counters = [
        _at_the_edge(look.counters.get(uuid, Counters()), counted, seen, family)
        for look, counted in ((before, seen.before), (after, seen.after))
    ]
    found = [gpu.processes.value or () for gpu in (before.of(uuid), after.of(uuid)) if gpu is not None]
    return GpuSeries(
        uuid=uuid,
        node=before.snapshot.host.node,
        samples=tuple(sample for sample in seen.samples if ticks[0] <= sample.tick < ticks[1]),
        before=counters[0],
        after=counters[1],
        processes=tuple({each.pid: each for each in (*seen.processes, *(p for each in found for p in each))}.values()),
        xids=_xids(uuid, seen, before, after),
        lost=seen.lost,
    )


def _at_the_edge(counters: Counters, counted: Counted, seen: Seen, family: Family | None) -> Counters:
    """The counters with what the sampler read just before the window, or just after it.

    Throttling by field numbers that are sure, and only where both ends have it: both must be from the same source.
    """
    numbers = {"power_cap_ns": throttle.POWER_CAP, "sync_boost_ns": throttle.SYNC_BOOST, **(family or {})}
    both = seen.before.fields.keys() & seen.after.fields.keys()
    read = {
        name: Reading(counted.fields[number], evidence=f"NVML field {number}")
        for name, number in numbers.items()
        if number in both
    }
    used = ", ".join(str(numbers[name]) for name in read)
    energy = Reading(counted.energy_mj, evidence=counted.energy)
    return replace(
        counters,
        **read,
        energy_mj=energy if energy.known else lacking(Answer.UNKNOWN, counted.energy or "not read"),
        source=counters.source if family is None else f"NVML fields {used}",
    )


def _xids(uuid: str, seen: Seen, before: Look, after: Look) -> tuple[Xid, ...]:
    """By NVML's events; where it has none, by the kernel log, as far as we may read it."""
    gpu = before.of(uuid)
    bus_id = "" if gpu is None else gpu.bus_id.value or ""
    lasted_s = (after.at_ns - before.at_ns) / 1e9
    if not seen.unheard:
        return tuple(Xid(bus_id=bus_id, code=code, age_s=lasted_s) for code in seen.xids)
    logged = after.snapshot.host.xids.value or ()
    return tuple(xid for xid in logged if xid.age_s < lasted_s + _SLACK_S and _address(xid.bus_id) == _address(bus_id))


def _address(bus_id: str) -> tuple[int, str]:
    """Domain, bus and device: NVML writes 00000000:00:06.0, the kernel log 0000:00:06."""
    domain, _, rest = bus_id.lower().partition(":")
    return int(domain or "0", 16), rest.partition(".")[0]
