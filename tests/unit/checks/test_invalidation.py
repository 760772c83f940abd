"""Rules over what a machine did while it was measured: what invalidates, what is noted, what lost samples hide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_llmperf.checks import invalidation
from pytest_llmperf.checks.clocks import slowest_sm_clock_mhz
from pytest_llmperf.checks.standing import Standing, standing
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gpu import Fabric, Memory, Mode, PowerProfiles, Process, Vboost
from pytest_llmperf.model.host_facts import Xid
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.model.telemetry import Counters, GpuSeries, Sample, Telemetry
from tests.machines import board, h200, with_gpu

INTERVAL_NS = 500_000_000
NAMES = ("power_cap_ns", "sw_thermal_ns", "hw_thermal_ns", "power_brake_ns", "ecc_uncorrected", "nvlink_errors")


def counters(**values: int) -> Counters:
    return Counters(**{name: Reading(values.get(name, 0)) for name in NAMES}, source="NVML fields 74, 269, 270, 271")


def series(
    uuid: str, reasons: Sequence[int | None], clocks: Sequence[int] | int = 1980, *, hot: int = 60, **grown: int
) -> GpuSeries:
    """A GPU with these event reasons, None for a lost sample, and counters that grew by this much."""
    mhz = [clocks] * len(reasons) if isinstance(clocks, int) else clocks
    samples = tuple(
        Sample(tick=tick, at_ns=tick * INTERVAL_NS, sm_clock_mhz=clock, event_reasons=bits, temperature_c=hot)
        for tick, (bits, clock) in enumerate(zip(reasons, mhz, strict=True))
        if bits is not None
    )
    return GpuSeries(uuid=uuid, node="node-a", samples=samples, before=counters(), after=counters(**grown))


def telemetry(*gpus: GpuSeries, ticks: int = 20) -> Telemetry:
    return Telemetry(window_ns=(0, ticks * INTERVAL_NS), interval_ns=INTERVAL_NS, ticks=(0, ticks), gpus=gpus)


def look(measured: Telemetry, **how: Any) -> Mapping[str, Finding]:
    return {finding.check.removeprefix("during_"): finding for finding in invalidation.examine(measured, **how)}


def failed(measured: Telemetry) -> set[str]:
    return {name for name, finding in look(measured).items() if finding.invalidates}


def worth(measured: Telemetry, **how: Any) -> Standing:
    return standing(invalidation.examine(measured, **how))


def but(bits: int, *at: int, otherwise: int = 0, ticks: int = 20) -> list[int | None]:
    return [bits if tick in at else otherwise for tick in range(ticks)]


def test_an_undisturbed_window_is_valid() -> None:
    assert worth(telemetry(series("GPU-a", [0] * 20), series("GPU-b", [0] * 20))) is Standing.VALID


def test_the_power_cap_is_recorded_and_not_invalid() -> None:
    found = look(telemetry(series("GPU-a", [4] * 20, 1485, power_cap_ns=9_500_000_000)))
    assert standing(found.values()) is Standing.VALID
    assert (found["power_cap"].policy, found["power_cap"].value) == ("record", "of the window: GPU-a on node-a 95%")
    assert found["sm_clock"].value == "1485 MHz"


@pytest.mark.parametrize(
    ("gpu", "check"),
    [
        (series("GPU-a", but(0x2, 4, 5)), "clock_setting"),
        (series("GPU-a", but(0x8, 4, 5)), "hw_slowdown"),
        (series("GPU-a", but(0x20, 4, 5), sw_thermal_ns=90_000_000), "sw_thermal"),
        (series("GPU-a", [0] * 20, sw_thermal_ns=100_000_001), "sw_thermal"),
        (series("GPU-a", but(0x40, 4), hw_thermal_ns=1), "hw_thermal"),
        (series("GPU-a", [0] * 20, hw_thermal_ns=1), "hw_thermal"),
        (series("GPU-a", but(0x80, 4), power_brake_ns=1), "power_brake"),
        (series("GPU-a", [0] * 20, power_brake_ns=1), "power_brake"),
        (series("GPU-a", [0] * 20, ecc_uncorrected=1), "errors"),
        (series("GPU-a", [0] * 20, nvlink_errors=1), "errors"),
        (replace(series("GPU-a", [0] * 20), xids=(Xid(bus_id="0", code=79, age_s=1),)), "xid"),
        (replace(series("GPU-a", [0] * 20), lost="nvmlDeviceGetClockInfo: 15 GPU is lost"), "gpu_lost"),
    ],
)
def test_what_invalidates(gpu: GpuSeries, check: str) -> None:
    assert failed(telemetry(series("GPU-b", [0] * 20), gpu)) == {check}
    assert "GPU-a on node-a" in look(telemetry(gpu))[check].value


@pytest.mark.parametrize(
    ("gpu", "check"),
    [
        (series("GPU-a", but(0x2, 4)), "clock_setting"),
        (series("GPU-a", but(0x8, 4, 6)), "hw_slowdown"),
        (series("GPU-a", but(0x20, 4), sw_thermal_ns=90_000_000), "sw_thermal"),
        (series("GPU-a", [0] * 20, sw_thermal_ns=1), "sw_thermal"),
        (series("GPU-a", [0x10] * 20), "clock_reasons"),
        (series("GPU-a", [0x200] * 20), "clock_reasons"),
        (series("GPU-a", but(0x1000, 3)), "clock_reasons"),
        (series("GPU-a", [1] * 5 + [0] * 15), "host_bound"),
        (series("GPU-a", [4] * 20, [1965] * 10 + [1580] * 10), "drift"),
        (replace(series("GPU-a", [0] * 20), xids=(Xid(bus_id="0", code=31, age_s=1),)), "xid"),
    ],
)
def test_what_is_noted(gpu: GpuSeries, check: str) -> None:
    found = look(telemetry(gpu))
    assert standing(found.values()) is Standing.NOTED
    assert {name for name, finding in found.items() if finding.status is Status.FAIL} == {check}


def test_unknown_reasons_are_shown_in_hex() -> None:
    assert "0x1000" in look(telemetry(series("GPU-a", but(0x1001, 3))))["clock_reasons"].value


@pytest.mark.parametrize("reasons", [[1] * 4 + [0] * 16, [0x100] * 20])
def test_what_is_not_even_noted(reasons: list[int | None]) -> None:
    assert worth(telemetry(series("GPU-a", reasons))) is Standing.VALID


def test_declared_clock_limits_are_no_fault() -> None:
    locked = telemetry(series("GPU-a", [2] * 20, 1500))
    assert worth(locked) is Standing.INVALID
    assert worth(locked, locked_clocks=True) is Standing.NOTED


def test_a_straggler_is_named_with_its_node_and_of_two_the_slower_one_is() -> None:
    pair = telemetry(series("GPU-a", [0] * 20, 1200), series("GPU-b", [0] * 20, 1980))
    found = look(pair)["straggler"]
    assert (found.status, found.value) == (Status.FAIL, "GPU-a on node-a at 1200 MHz, the group at 1980")
    assert failed(telemetry(*(series(f"GPU-{n}", [0] * 20, 1790 if n else 1600) for n in range(8)))) == {"straggler"}
    assert not failed(telemetry(*(series(f"GPU-{n}", [0] * 20, 1790 if n else 1620) for n in range(8))))


def test_lost_samples_do_not_hide_a_straggler() -> None:
    slow = series("GPU-a", [0] * 20, [1980, 1200] * 10)
    assert failed(telemetry(slow, series("GPU-b", [0] * 20))) == {"straggler"}
    holed = replace(slow, samples=slow.samples[::2])
    assert look(telemetry(holed, series("GPU-b", [0] * 20)))["straggler"].status is Status.UNKNOWN


def test_an_idle_gpu_is_no_straggler() -> None:
    assert look(telemetry(series("GPU-a", [1] * 20, 345), series("GPU-b", [0] * 20)))["straggler"].status is (
        Status.NOT_APPLICABLE
    )


def test_clocks_other_than_the_baselines_are_not_comparable() -> None:
    measured = telemetry(series("GPU-a", [4] * 20, 1485))
    assert slowest_sm_clock_mhz(measured) == 1485
    assert worth(measured, baseline_sm_clock_mhz=1530) is Standing.VALID
    assert worth(measured, baseline_sm_clock_mhz=1540) is Standing.INCOMPARABLE


def test_without_telemetry_nothing_is_verified() -> None:
    assert worth(telemetry()) is Standing.UNVERIFIED
    assert worth(telemetry(series("GPU-a", []), ticks=0)) is Standing.UNVERIFIED


@pytest.mark.parametrize(
    ("reasons", "grown", "expected"),
    [
        ([0, None, 0, 0], {}, Standing.VALID),
        ([0, None, None, 0], {}, Standing.UNVERIFIED),
        ([0, 0x8, None, 0], {}, Standing.UNVERIFIED),
        ([None, 0x8, 0, 0], {}, Standing.UNVERIFIED),
        ([0, 0x20, None, 0], {"sw_thermal_ns": 19_999_999}, Standing.NOTED),
        ([0, None, 0, 0], {"hw_thermal_ns": 1}, Standing.INVALID),
    ],
)
def test_what_lost_samples_could_hide_is_unknown_unless_a_counter_rules_it_out(
    reasons: list[int | None], grown: dict[str, int], expected: Standing
) -> None:
    assert worth(telemetry(series("GPU-a", reasons, **grown), ticks=4)) is expected


def test_without_counters_one_lost_sample_is_enough_to_doubt() -> None:
    blind = Counters(source="none")
    whole = replace(series("GPU-a", [0] * 20), before=blind, after=blind)
    assert worth(telemetry(whole)) is Standing.VALID
    holed = replace(series("GPU-a", [0] * 10 + [None] + [0] * 9), before=blind, after=blind)
    assert worth(telemetry(holed)) is Standing.UNVERIFIED


def test_a_counter_that_went_backwards_is_not_known() -> None:
    reset = replace(series("GPU-a", [0, None, *[0] * 18]), before=counters(hw_thermal_ns=5))
    assert look(telemetry(reset))["hw_thermal"].status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"persistence": False}, "persistence mode on to off"),
        ({"power_limit_enforced_mw": 500_000}, "power limit 700000 to 500000"),
        ({"vboost": Vboost(current=1, maximum=4)}, "vboost 0 to 1"),
        ({"power_profiles": PowerProfiles(requested=(1,), enforced=(1,))}, "power profile none to 1"),
        (
            {"fabric": Fabric(state=3, status=999)},
            "fabric state 3, status 0, health 1 to state 3, status 999",
        ),
        ({"mig": Mode(current=False, pending=True)}, "MIG off (pending off) to off (pending on)"),
    ],
)
def test_a_setting_that_changed_meanwhile(change: dict[str, Any], words: str) -> None:
    start = with_gpu(board(1), power_profiles=PowerProfiles(requested=(), enforced=()))
    measured = replace(telemetry(series("GPU-a", [0] * 20)), before=start, after=with_gpu(start, **change))
    assert words in look(measured)["changed_settings"].value
    assert failed(measured) == {"changed_settings"}


def test_a_setting_that_cannot_be_read_afterwards_is_unknown() -> None:
    blind = with_gpu(h200(), vboost=lacking(Answer.UNKNOWN, "nvidia-smi: no answer within 20 s"))
    measured = replace(telemetry(series("GPU-a", [0] * 20)), before=h200(), after=blind)
    assert worth(measured) is Standing.UNVERIFIED
    assert worth(replace(measured, after=h200())) is Standing.VALID
    assert worth(replace(measured, after=replace(h200(), gpus=()))) is Standing.UNVERIFIED


CAME = Process(pid=9, name="/usr/bin/trainer", user="ann", memory_bytes=1 << 30)


@pytest.mark.parametrize(
    ("process", "before", "expected"),
    [
        (CAME, (), Standing.INVALID),
        (CAME, (CAME,), Standing.VALID),
        (replace(CAME, pid=7), (), Standing.VALID),
        (replace(CAME, name="/opt/dcgm-exporter"), (), Standing.VALID),
        (Process(pid=9, here=False), (), Standing.UNVERIFIED),
    ],
)
def test_who_came_meanwhile(process: Process, before: tuple[Process, ...], expected: Standing) -> None:
    uuid = h200().gpus[0].uuid
    gpu = replace(series(uuid, [0] * 20), processes=(process,))
    measured = replace(telemetry(gpu), before=with_gpu(h200(), processes=before))
    findings = invalidation.examine(measured, own={7}, allow={"dcgm-exporter"})
    found = {finding.check: finding for finding in findings}["during_foreign_processes"]
    assert standing([found]) is expected
    if expected is Standing.INVALID:
        assert f"{uuid} on node-a: /usr/bin/trainer (PID 9, ann)" in found.value


def held(used_gib: int, ours_gib: int | None) -> Snapshot:
    ours = Process(pid=7, memory_bytes=None if ours_gib is None else ours_gib << 30)
    memory = Memory(total=150 << 30, used=used_gib << 30, reserved=0)
    return with_gpu(h200(), memory=memory, processes=(ours,))


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (held(100, 100), held(120, 120), Status.PASS),
        (held(100, 100), held(101, 100), Status.PASS),
        (held(100, 100), held(102, 100), Status.FAIL),
        (held(100, None), held(120, None), Status.NOT_APPLICABLE),
    ],
)
def test_memory_that_grew_beside_the_engines(before: Snapshot, after: Snapshot, status: Status) -> None:
    measured = replace(telemetry(series("GPU-a", [0] * 20)), before=before, after=after)
    assert look(measured, own={7})["memory_growth"].status is status


# --- properties ---

THROTTLES = {0x2: "", 0x8: "", 0x20: "sw_thermal_ns", 0x40: "hw_thermal_ns", 0x80: "power_brake_ns"}
TICKS = 12

reasons_of_a_gpu = st.lists(
    st.one_of(st.just(0), st.sampled_from([0x1, 0x2, 0x4, 0x8, 0x20, 0x40, 0x80, 0x24, 0xA8, 0x400]), st.none()),
    min_size=TICKS, max_size=TICKS,
)  # fmt: skip
clocks_of_a_gpu = st.lists(st.sampled_from([1980, 1950, 1790, 1770, 1200]), min_size=TICKS, max_size=TICKS)


def counted(uuid: str, reasons: Sequence[int | None], clocks: Sequence[int]) -> GpuSeries:
    """A GPU whose counters agree with its samples: each sample with a reason stands for an interval."""
    grown = {
        counter: INTERVAL_NS * sum(bool((bits or 0) & bit) for bits in reasons)
        for bit, counter in THROTTLES.items()
        if counter
    }
    return series(uuid, reasons, clocks, **grown)


groups = st.lists(st.tuples(reasons_of_a_gpu, clocks_of_a_gpu), min_size=1, max_size=3)


def group(parts: Sequence[tuple[Sequence[int | None], Sequence[int]]], *, blind: bool) -> Telemetry:
    gpus = [counted(f"GPU-{index}", reasons, clocks) for index, (reasons, clocks) in enumerate(parts)]
    without = Counters(source="none")
    return telemetry(*(replace(gpu, before=without, after=without) if blind else gpu for gpu in gpus), ticks=TICKS)


def good(measured: Telemetry) -> bool:
    return worth(measured) in {Standing.VALID, Standing.NOTED}


@given(groups, st.booleans(), st.randoms())
def test_the_order_of_gpus_never_matters(parts: list[Any], blind: bool, random: Any) -> None:
    measured = group(parts, blind=blind)
    gpus = list(measured.gpus)
    random.shuffle(gpus)
    assert invalidation.examine(replace(measured, gpus=tuple(gpus))) == invalidation.examine(measured)


@given(groups, st.booleans(), st.data())
def test_more_throttling_never_makes_invalid_valid(parts: list[Any], blind: bool, data: st.DataObject) -> None:
    before = group(parts, blind=blind)
    assume(worth(before) is Standing.INVALID)
    which, tick = data.draw(st.integers(0, len(parts) - 1)), data.draw(st.integers(0, TICKS - 1))
    reasons, clocks = parts[which]
    worse = list(reasons)
    worse[tick] = None if worse[tick] is None else worse[tick] | data.draw(st.sampled_from(list(THROTTLES)))
    changed = [(worse, clocks) if index == which else part for index, part in enumerate(parts)]
    assert worth(group(changed, blind=blind)) is Standing.INVALID


@given(groups, st.booleans(), st.data())
def test_lost_samples_never_make_invalid_valid(parts: list[Any], blind: bool, data: st.DataObject) -> None:
    whole = group(parts, blind=blind)
    assume(not good(whole))
    gpus = []
    for gpu in whole.gpus:
        lost = data.draw(st.sets(st.integers(0, TICKS - 1), max_size=4))
        gpus.append(replace(gpu, samples=tuple(sample for sample in gpu.samples if sample.tick not in lost)))
    assert not good(replace(whole, gpus=tuple(gpus)))
