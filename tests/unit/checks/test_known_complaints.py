"""What users reported of machines: each report as a machine, with the outcome that it should have had."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmperf.checks import conditions, invalidation
from pytest_llmperf.checks.standing import Standing, standing
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.finding import Status
from pytest_llmperf.model.gpu import Fabric, Memory, Process, RemappedRows, Vboost
from pytest_llmperf.model.host_facts import Xid
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.model.telemetry import Counters, GpuSeries, Sample, Telemetry
from tests.machines import board, h200, look, subject, with_gpu, with_host

INTERVAL_NS = 500_000_000


def gpu(uuid: str, mhz: list[int], reasons: int, *, thermal_share: float = 0.0, hot: int = 60) -> GpuSeries:
    samples = tuple(
        Sample(tick=tick, at_ns=tick * INTERVAL_NS, sm_clock_mhz=clock, event_reasons=reasons, temperature_c=hot)
        for tick, clock in enumerate(mhz)
    )
    zero = Counters(
        power_cap_ns=Reading(0), sw_thermal_ns=Reading(0), hw_thermal_ns=Reading(0), power_brake_ns=Reading(0)
    )
    grown = replace(zero, sw_thermal_ns=Reading(round(thermal_share * len(mhz) * INTERVAL_NS)))
    return GpuSeries(uuid=uuid, node="node-a", samples=samples, before=zero, after=grown)


def measured(*gpus: GpuSeries) -> Telemetry:
    ticks = len(gpus[0].samples)
    return Telemetry(window_ns=(0, ticks * INTERVAL_NS), interval_ns=INTERVAL_NS, ticks=(0, ticks), gpus=gpus)


def test_a_hot_gpu_of_a_pair_is_invalid_by_heat_and_as_a_straggler() -> None:
    """sglang#39206: GPU 1 at 480 MHz and 87 °C, GPU 0 at 1980."""
    window = measured(gpu("GPU-0", [1980] * 40, 0x4), gpu("GPU-1", [480] * 40, 0x20, thermal_share=1.0, hot=87))
    failed = {each.check: each.value for each in invalidation.examine(window) if each.invalidates}
    assert failed == {
        "during_sw_thermal": "GPU-1 on node-a (100.0% of the window, up to 87 °C)",
        "during_straggler": "GPU-1 on node-a at 480 MHz, the group at 1980",
    }


def test_heat_that_no_sample_shows_is_invalid_and_no_regression() -> None:
    """atlas#569: equal fingerprints, 5 % of the time slowed down, and a regression of 38 % that was taken back."""
    window = measured(gpu("GPU-0", [1980] * 40, 0x4, thermal_share=0.05))
    assert standing(invalidation.examine(window)) is Standing.INVALID


def test_a_power_limit_that_was_left_after_booting_is_shown_against_the_default() -> None:
    """club-3090#1277: 230 W of 370, -40 %."""
    limited = with_gpu(h200(), power_limit_enforced_mw=230_000, power_limit_default_mw=370_000)
    found = look(limited)["power_limit"]
    assert (found.invalidates, found.value) == (True, "230 W, 62% of the default")
    assert "nvidia-smi -i 0 -pl 370" in found.remedy


def test_clocks_that_sink_under_the_power_cap_are_valid_with_a_note() -> None:
    """flashinfer#2899: a B200 from 1965 to 1580 MHz."""
    window = measured(gpu("GPU-0", [1965] * 20 + [1580] * 20, 0x4))
    findings = invalidation.examine(window)
    assert standing(findings) is Standing.NOTED
    assert [each.value for each in findings if each.status is Status.FAIL] == ["GPU-0 on node-a: 1965 to 1580 MHz"]


def test_a_slider_that_cannot_be_read_is_unverified_with_the_text_and_what_to_do() -> None:
    """inference_results_v5.0#13: exit status 1 in a container."""
    said = "nvidia-smi boost-slider -l: exit 1: Unable to initialise"
    wanted = {"vboost": Expectation(policy="require", value="1")}
    found = look(with_gpu(h200(), vboost=lacking(Answer.UNKNOWN, said)), expectations=wanted)["vboost"]
    assert (found.unverified, found.invalidates, found.evidence) == (True, False, said)


@pytest.mark.parametrize("report", ["vllm#42017", "vllm-omni#4165", "dynamo#2894"])
def test_memory_that_nobody_is_seen_to_hold_fails(report: str) -> None:
    held = with_gpu(h200(), memory=Memory(total=150 << 30, used=60 << 30, reserved=1 << 29), processes=())
    found = look(held)
    assert found["memory_in_use"].invalidates
    assert "no process is seen to hold it" in found["memory_in_use"].value
    assert found["foreign_processes"].status is Status.PASS


def test_a_fabric_that_fails_fails_though_all_links_are_active() -> None:
    """dstack#1167, azhpc-images#506: Insufficient Resources."""
    found = look(with_gpu(board(), 0, fabric=Fabric(state=3, status=23)))
    assert found["fabric"].invalidates
    assert "insufficient resources" in found["fabric"].value
    assert found["nvlink"].status is Status.PASS


@pytest.mark.parametrize("fabric", [Fabric(state=2, status=0), Fabric(state=3, status=999)])
def test_a_dead_fabric_manager_shows_in_each_of_its_forms(fabric: Fabric) -> None:
    """NVSentinel#883, #889."""
    assert look(with_gpu(board(), 0, fabric=fabric))["fabric"].invalidates
    stale = look(with_host(board(), fabric_manager=False))
    assert (stale["fabric"].status, stale["fabric_manager"].invalidates) == (Status.PASS, True)


def test_confidential_computing_is_not_comparable() -> None:
    """vllm#57680: 3.3 times slower, with it alone."""
    stored = conditions.facts(subject(h200()))
    on = replace(h200(), confidential_compute=Reading(True))
    differing = [each.check for each in look(on, baseline=stored).values() if each.incomparable]
    assert differing == ["confidential_compute"]


def test_pdl_is_no_question_below_hopper() -> None:
    """TensorRT-LLM#16330: its default breaks an older GPU."""
    found = look(with_gpu(h200(), compute_capability=(8, 9)))["pdl"]
    assert (found.status, "TRTLLM_ENABLE_PDL=0" in found.remedy) == (Status.NOT_APPLICABLE, True)


def test_what_made_an_engine_five_times_faster_is_listed() -> None:
    """TensorRT-LLM#3058: PDL and vboost among it."""
    fast = with_host(with_gpu(h200(), vboost=Vboost(current=4, maximum=4)), environment={"TRTLLM_ENABLE_PDL": "1"})
    found = look(fast)
    assert (found["vboost"].value, found["pdl"].value) == ("4 of 4", "on")
    slow = look(h200(), baseline=conditions.facts(subject(fast)))
    assert {"vboost", "pdl"} <= {each.check for each in slow.values() if each.incomparable}


def test_a_process_of_another_namespace_is_unattributable_and_not_foreign() -> None:
    """nvidia-docker#1483, #179, gpu-monitoring-tools#63."""
    hidden = with_gpu(h200(), processes=(Process(pid=991, memory_bytes=1 << 30, here=False),))
    found = look(hidden)["foreign_processes"]
    assert (found.status, found.invalidates) == (Status.UNKNOWN, False)
    assert "PID 991" in found.value


def test_rows_and_reports_of_broken_memory_are_the_machines_and_not_the_engines() -> None:
    """vllm-backport#62: Xid 48, 63, 94 and 154, and remaps that grew, blamed on the engine."""
    for code in (48, 63, 94, 154):
        window = measured(replace(gpu("GPU-0", [1980] * 40, 0), xids=(Xid(bus_id="0000:00:06", code=code, age_s=1),)))
        assert standing(invalidation.examine(window)) is Standing.INVALID
    rows = RemappedRows(correctable=1, uncorrectable=4, pending=True, failed=False)
    assert look(with_gpu(h200(), remapped_rows=rows))["remapped_rows"].invalidates


@pytest.mark.parametrize("report", ["nccl#342", "llm-d#352"])
def test_a_small_shared_memory_is_warned_of_before_anything_starts(report: str) -> None:
    found = look(with_host(board(2), shm_bytes=64 << 20))["shared_memory"]
    assert (found.status, found.policy, found.value) == (Status.FAIL, "warn", "64 MiB")


@pytest.mark.parametrize("report", ["gunrock#88", "arrayfire#2467"])
def test_persistence_mode_that_is_off_is_not_counted_as_run_time(report: str) -> None:
    assert look(with_gpu(h200(), persistence=False))["persistence_mode"].invalidates


def test_a_pool_of_mixed_parts_is_not_noise() -> None:
    """TensorRT-LLM#8391: NVL and PCIe cards of one name."""
    assert look(with_gpu(board(2), 1, name="NVIDIA H100 NVL"))["same_gpus"].invalidates
    stored = conditions.facts(subject(h200()))
    other = look(with_gpu(h200(), part_number="699-21010-0200-300"), baseline=stored)
    assert other["gpu_identity"].incomparable
