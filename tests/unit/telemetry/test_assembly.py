"""What was seen becomes the telemetry of a window: which samples, which counters, which reports."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.checks import invalidation
from pytest_llmperf.model.finding import Status
from pytest_llmperf.model.host_facts import Xid
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.model.telemetry import Counters, Sample, Telemetry
from pytest_llmperf.telemetry import samples_file, telemetry_file
from pytest_llmperf.telemetry.assembly import Look, assemble
from pytest_llmperf.telemetry.counters import BY_NAME
from pytest_llmperf.telemetry.samples_file import Counted, Sampled, Seen
from tests.machines import h200, with_host

UUID = h200().gpus[0].uuid
SECOND = 1_000_000_000
HALF = SECOND // 2


def counted(energy_mj: int = 0, **fields: int) -> Counted:
    return Counted(energy_mj=energy_mj, energy="a call", fields={int(key[1:]): value for key, value in fields.items()})


def sampled(ticks: int = 30, origin_ns: int = 100 * SECOND, **seen: Any) -> Sampled:
    samples = [Sample(tick=tick, at_ns=origin_ns + tick * HALF, event_reasons=0) for tick in range(ticks)]
    return Sampled(gpus={UUID: Seen(samples=samples, **seen)}, origin_ns=origin_ns, end="asked to")


def look(at_s: float = 99, **named: int) -> Look:
    counters = Counters(
        **{name: Reading(value, evidence="nvidia-smi") for name, value in named.items()}, source=BY_NAME
    )
    return Look(at_ns=round(at_s * SECOND), snapshot=h200(), counters={UUID: counters})


def told(
    seen: Sampled, *, window_s: tuple[float, float] = (101, 111), before: Look | None = None, after: Look | None = None
) -> Telemetry:
    window = round(window_s[0] * SECOND), round(window_s[1] * SECOND)
    return assemble(seen, window_ns=window, interval_ns=HALF, before=before or look(), after=after or look(120))


@pytest.mark.parametrize(
    ("window_s", "ticks"),
    [((100, 110), (0, 20)), ((101, 111), (2, 22)), ((100.2, 110.2), (1, 21)), ((100.2, 100.3), (1, 1))],
)
def test_the_ticks_of_a_window_are_those_that_were_due_in_it(
    window_s: tuple[float, float], ticks: tuple[int, int]
) -> None:
    telemetry = told(sampled(), window_s=window_s)
    assert telemetry.ticks == ticks
    assert [each.tick for each in telemetry.gpus[0].samples] == list(range(*ticks))


def test_a_sampler_that_never_began_has_all_samples_missing() -> None:
    telemetry = told(replace(sampled(0), origin_ns=None))
    assert telemetry.ticks == (0, 20)
    assert invalidation.complete(telemetry).status is Status.UNKNOWN


def test_counters_come_from_fields_whose_numbers_are_proven() -> None:
    named = {"power_cap_ns": 9000, "sw_thermal_ns": 5000, "hw_thermal_ns": 0, "power_brake_ns": 0}
    fields = {"f74": 9400, "f269": 5200, "f270": 0, "f271": 0}
    gpu = told(
        sampled(before=counted(1000, **fields), after=counted(8000, **(fields | {"f269": 8000}))),
        before=look(**named),
        after=look(**(named | {"sw_thermal_ns": 8000})),
    ).gpus[0]
    assert (gpu.before.sw_thermal_ns.value, gpu.after.sw_thermal_ns.value) == (5200, 8000)
    assert (gpu.before.energy_mj.value, gpu.after.energy_mj.value) == (1000, 8000)
    assert gpu.after.source == "NVML fields 74, 269, 270, 271"


def test_without_proof_they_come_from_nvidia_smi_and_both_from_the_same() -> None:
    zeros = {"f74": 0, "f269": 0, "f270": 0, "f271": 0}
    names = {"power_cap_ns": 0, "sw_thermal_ns": 0, "hw_thermal_ns": 0, "power_brake_ns": 0}
    gpu = told(
        sampled(before=counted(**zeros), after=counted(**zeros)), before=look(**names), after=look(**names)
    ).gpus[0]
    assert gpu.after.sw_thermal_ns == Reading(0, evidence="nvidia-smi")
    assert gpu.after.power_cap_ns == Reading(0, evidence="NVML field 74")
    assert gpu.after.source == BY_NAME


def test_without_either_they_are_unknown_with_the_reason() -> None:
    counters = Counters(sw_thermal_ns=lacking(Answer.UNSUPPORTED, "nvidia-smi: not found"))
    silent = replace(look(), counters={UUID: counters})
    gpu = told(sampled(before=counted(f269=1), after=counted(f269=2)), before=silent, after=silent).gpus[0]
    assert gpu.after.sw_thermal_ns == Reading(None, Answer.UNSUPPORTED, "nvidia-smi: not found")


def test_reports_come_from_events_else_from_the_kernel_log_of_this_gpu_and_time() -> None:
    xids = tuple(Xid(bus_id=bus, code=code, age_s=age) for bus, code, age in (
        ("0000:00:06", 63, 5.0), ("0000:00:06", 31, 500.0), ("0000:00:07", 79, 5.0)
    ))  # fmt: skip
    after = replace(look(120), snapshot=with_host(h200(), xids=Reading(xids)))
    by_events = told(sampled(xids=[79]), after=after)
    by_log = told(sampled(unheard="no events"), after=after)
    assert [xid.code for xid in by_events.gpus[0].xids] == [79]
    assert [xid.code for xid in by_log.gpus[0].xids] == [63]


def test_a_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    lines = [
        {"uuids": [UUID], "left_out": {"0": {"power_mw": "takes 450 us"}}},
        {"counters": "before", "gpu": 0, "energy_mj": 5, "energy": "a call", "fields": {"74": 1}},
        {"origin_ns": 7, "interval_ns": HALF},
        {"gpu": 0, "tick": 0, "at_ns": 8, "sm_clock_mhz": 1980},
    ]
    file = tmp_path / "telemetry.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + '\n{"gpu": 0, "ti')
    seen = samples_file.read(file, [UUID])
    assert (seen.origin_ns, seen.end, seen.whole) == (7, "", False)
    gpu = seen.gpus[UUID]
    assert gpu.samples == [Sample(tick=0, at_ns=8, sm_clock_mhz=1980)]
    assert gpu.before == Counted(energy_mj=5, energy="a call", fields={74: 1})
    assert gpu.left_out == {"power_mw": "takes 450 us"}
    assert samples_file.read(tmp_path / "nothing", [UUID]).gpus[UUID].samples == []


def test_telemetry_survives_its_files(tmp_path: Path) -> None:
    samples = [{"gpu": 0, "tick": tick, "at_ns": tick, "event_reasons": 0} for tick in range(30)]
    (tmp_path / samples_file.NAME).write_text("\n".join(map(json.dumps, samples)))
    telemetry = told(samples_file_of(tmp_path))
    telemetry_file.write(tmp_path, telemetry)
    assert telemetry_file.read(tmp_path) == telemetry
    assert "samples" not in (tmp_path / telemetry_file.NAME).read_text()
    assert telemetry_file.read(tmp_path / "elsewhere") is None


def samples_file_of(folder: Path) -> Sampled:
    return replace(samples_file.read(folder / samples_file.NAME, [UUID]), origin_ns=100 * SECOND)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / telemetry_file.NAME).write_text('{"schema": 99}')
    with pytest.raises(ValueError, match="another schema than 1"):
        telemetry_file.read(tmp_path)
