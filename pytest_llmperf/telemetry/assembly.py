"""What the sampler, nvidia-smi and two looks at the machine have seen, put together as the telemetry of one window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_llmperf.model.gpu import Gpu
from pytest_llmperf.model.host_facts import Xid
from pytest_llmperf.model.reading import NOT_READ, Answer, Reading, lacking
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.model.telemetry import Counters, GpuSeries, Telemetry
from pytest_llmperf.telemetry.nvml import throttle
from pytest_llmperf.telemetry.nvml.throttle import Family
from pytest_llmperf.telemetry.samples_file import Counted, Sampled, Seen
from pytest_llmperf.telemetry.smi import COUNTERS

Named = Reading[Mapping[str, Mapping[str, int]]]
"""By uuid and column of ``Counters``: what nvidia-smi says of throttling."""

_SLACK_S = 1.0
"""The kernel log's stamps are those of another clock than ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The machine once, outside the window; ``at_ns`` is CLOCK_MONOTONIC."""

    at_ns: int
    snapshot: Snapshot
    named: Named = field(default=NOT_READ)

    def of(self, uuid: str) -> Gpu | None:
        """One GPU of it."""
        return next((gpu for gpu in self.snapshot.gpus if gpu.uuid == uuid), None)


def assemble(sampled: Sampled, *, window_ns: tuple[int, int], interval_ns: int, before: Look, after: Look) -> Telemetry:
    """The telemetry of a window; samples of before and after it are left out."""
    ticks = _ticks(sampled.origin_ns, window_ns, interval_ns)
    family = throttle.calibrated(
        (look.named.value.get(uuid, {}), counted.fields)
        for uuid, seen in sampled.gpus.items()
        for look, counted in ((before, seen.before), (after, seen.after))
        if look.named.value is not None and counted.fields
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
    throttled, source = _throttled(uuid, seen, before, after, family)
    counters = [
        Counters(
            **{name: pair[index] for name, pair in throttled.items()},
            energy_mj=_energy(counted),
            ecc_uncorrected=NOT_READ if gpu is None else gpu.ecc_uncorrected,
            nvlink_errors=NOT_READ if gpu is None else gpu.nvlink_errors,
            pcie_replays=NOT_READ if gpu is None else gpu.pcie_replays,
            source=source,
        )
        for index, (counted, gpu) in enumerate(((seen.before, before.of(uuid)), (seen.after, after.of(uuid))))
    ]
    return GpuSeries(
        uuid=uuid,
        node=before.snapshot.host.node,
        samples=tuple(sample for sample in seen.samples if ticks[0] <= sample.tick < ticks[1]),
        before=counters[0],
        after=counters[1],
        xids=_xids(uuid, seen, before, after),
        lost=seen.lost,
    )


def _energy(counted: Counted) -> Reading[int]:
    if counted.energy_mj is None:
        return lacking(Answer.UNKNOWN, counted.energy or "not read")
    return Reading(counted.energy_mj, evidence=counted.energy)


def _throttled(
    uuid: str, seen: Seen, before: Look, after: Look, family: Family | None
) -> tuple[dict[str, tuple[Reading[int], Reading[int]]], str]:
    """Both values of each counter from one source, and the sources: fields of which numbers are sure, else names."""
    numbers = {"power_cap_ns": throttle.POWER_CAP, "sync_boost_ns": throttle.SYNC_BOOST, **(family or {})}
    pairs: dict[str, tuple[Reading[int], Reading[int]]] = {}
    by_name = False
    for name in (*COUNTERS, "sync_boost_ns"):
        number = numbers.get(name)
        if number is not None and number in seen.before.fields and number in seen.after.fields:
            evidence = f"NVML field {number}"
            pairs[name] = (
                Reading(seen.before.fields[number], evidence=evidence),
                Reading(seen.after.fields[number], evidence=evidence),
            )
        else:
            pairs[name] = _by_name(name, uuid, before.named), _by_name(name, uuid, after.named)
            by_name = by_name or (pairs[name][0].known and pairs[name][1].known)
    sources = [f"NVML fields {', '.join(map(str, sorted(numbers.values())))}", *(["nvidia-smi"] if by_name else [])]
    return pairs, " and ".join(sources)


def _by_name(name: str, uuid: str, named: Named) -> Reading[int]:
    if named.value is None:
        return lacking(named.answer, named.evidence)
    value = named.value.get(uuid, {}).get(name)
    if value is None:
        return lacking(Answer.UNSUPPORTED, f"{named.evidence}: no {name} of {uuid}")
    return Reading(value, evidence=named.evidence)


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
