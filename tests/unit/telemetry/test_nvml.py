"""The NVML backend through the real pynvml, over a C library that answers as a driver would."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from pytest_llmperf.clock import FakeClock
from pytest_llmperf.model.gpu import Fabric, Gpu, Memory, Mode, NamedGpu, PowerProfiles, Process, RemappedRows
from pytest_llmperf.model.reading import NOT_READ, Answer, Reading
from pytest_llmperf.telemetry import nvml
from pytest_llmperf.telemetry.nvml import machine, session
from tests.nvml_shim.shim import Shim, install, library

FROM_ELSEWHERE = {"vboost", "power_smoothing", "numa_node"}
"""What NVML does not say."""


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shim:
    return install(monkeypatch, tmp_path)


def only(found: nvml.Gpus) -> Gpu:
    (gpu,) = found.gpus
    return gpu


def answers(gpu: Gpu) -> dict[str, Answer]:
    values = {field.name: getattr(gpu, field.name) for field in fields(gpu)}
    return {name: value.answer for name, value in values.items() if isinstance(value, Reading)}


def test_an_h200_answers_as_it_was_recorded(shim: Shim) -> None:
    found = nvml.read()
    gpu = only(found)
    assert (found.driver.value, found.cuda.value, found.confidential_compute.value) == ("580.159.04", 13000, False)
    assert gpu.uuid == "GPU-00000000-0000-0000-0000-000000000000"
    assert (gpu.name.value, gpu.part_number.value) == ("NVIDIA H200", "692-2G520-0282-001")
    assert gpu.bus_id.value == "00000000:00:06.0"
    assert gpu.memory.value == Memory(total=150754820096, used=0, reserved=644939776)
    assert gpu.persistence.value is True
    assert gpu.power_limit_range_mw.value == (200000, 700000)
    assert (gpu.sm_clock_mhz.value, gpu.sm_clock_max_mhz.value) == (375, 1980)
    assert gpu.application_clocks_mhz.value == (1980, 3201)
    assert (gpu.temperature_c.value, gpu.memory_temperature_c.value, gpu.margin_c.value) == (32, 36, 55)
    assert gpu.slowdown_threshold_c.value == 89
    assert gpu.ecc.value == Mode(current=True, pending=True)
    assert gpu.remapped_rows.value == RemappedRows(correctable=0, uncorrectable=0, pending=False, failed=False)
    assert gpu.processes.value == ()
    assert gpu.compute_capability.value == (9, 0)
    assert gpu.p2p == {}


def test_what_an_h200_in_a_virtual_machine_does_not_have_is_unsupported(shim: Shim) -> None:
    lacking = {name for name, answer in answers(only(nvml.read())).items() if answer is Answer.UNSUPPORTED}
    assert lacking == {"nvlinks", "nvlink_errors", "fabric", "power_profiles"}


def test_reading_asks_for_everything_and_sets_nothing(shim: Shim) -> None:
    gpu = only(nvml.read())
    unread = {name for name, answer in answers(gpu).items() if getattr(gpu, name) is NOT_READ}
    assert unread == FROM_ELSEWHERE
    assert shim.setters() == []


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (3, Answer.UNSUPPORTED),
        (4, Answer.NOT_PERMITTED),
        (9, Answer.UNSUPPORTED),
        (12, Answer.UNSUPPORTED),
        (13, Answer.UNSUPPORTED),
        (15, Answer.FAILED),
        (16, Answer.FAILED),
        (25, Answer.UNSUPPORTED),
        (26, Answer.UNSUPPORTED),
        (10, Answer.UNKNOWN),
        (17, Answer.UNKNOWN),
        (999, Answer.UNKNOWN),
        (1234, Answer.UNKNOWN),
    ],
)
def test_every_return_code_is_an_answer_with_the_code_as_evidence(shim: Shim, code: int, answer: Answer) -> None:
    shim.say(f"0.PersistenceMode !{code}", f"0.field.82 !{code}")
    gpu = only(nvml.read())
    assert gpu.persistence.value is None
    assert gpu.persistence.answer is gpu.memory_temperature_c.answer is answer
    assert gpu.persistence.evidence.startswith(f"nvmlDeviceGetPersistenceMode: {code} ")
    assert gpu.memory_temperature_c.evidence == f"NVML field 82: {code}"
    assert gpu.ecc.known  # one answer does not spoil the others


@pytest.mark.parametrize(("code", "answer"), [(9, Answer.UNSUPPORTED), (18, Answer.UNKNOWN), (4, Answer.NOT_PERMITTED)])
def test_without_a_driver_the_whole_backend_says_why(shim: Shim, code: int, answer: Answer) -> None:
    shim.say(f"init !{code}")
    found = nvml.read()
    assert found.gpus == ()
    assert found.driver.answer is found.cuda.answer is found.confidential_compute.answer is answer
    assert found.driver.evidence.startswith(f"nvmlInit: {code}")


def test_gpus_that_cannot_be_counted_are_not_none(shim: Shim) -> None:
    shim.facts.write_text("driver 580.159.04\ncount !999\n")
    found = nvml.read()
    assert (found.gpus, found.driver.answer) == ((), Answer.UNKNOWN)
    assert found.driver.evidence.startswith("nvmlDeviceGetCount: 999")


def test_without_the_library_it_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    assert nvml.read().driver.answer is Answer.UNSUPPORTED
    assert "Library Not Found" in nvml.read().driver.evidence


def test_without_the_bindings_it_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvml.read().driver.answer is Answer.UNSUPPORTED


def test_a_symbol_that_the_library_lacks_is_unsupported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, "WITHOUT_CONFIDENTIAL_COMPUTE")
    reading = nvml.read().confidential_compute
    assert (reading.answer, "13" in reading.evidence) == (Answer.UNSUPPORTED, True)


def test_a_binding_that_lacks_a_call_is_unsupported(shim: Shim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(pynvml, "nvmlDeviceGetMarginTemperature")
    monkeypatch.delattr(pynvml, "c_nvmlWorkloadPowerProfileCurrentProfiles_v1_t")
    gpu = only(nvml.read())
    assert gpu.margin_c.answer is gpu.power_profiles.answer is Answer.UNSUPPORTED
    assert "not in this nvidia-ml-py" in gpu.margin_c.evidence


def test_a_binding_that_fails_in_its_own_way_is_an_unknown(shim: Shim, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise TypeError("this function takes at least 2 arguments")

    monkeypatch.setattr(pynvml, "nvmlDeviceGetEccMode", fails)
    reading = only(nvml.read()).ecc
    assert (reading.answer, "TypeError" in reading.evidence) == (Answer.UNKNOWN, True)


def test_an_old_driver_is_asked_by_its_old_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shim = install(monkeypatch, tmp_path, "OLD_DRIVER")
    shim.say("0.CurrentClocksThrottleReasons 4")
    gpu = only(nvml.read())
    assert gpu.event_reasons == Reading(4, evidence="nvmlDeviceGetCurrentClocksThrottleReasons")
    assert gpu.memory.value == Memory(total=150754820096, used=644939776, reserved=None)


def test_a_refusal_is_not_evaded_by_an_older_name_and_what_is_too_new_is(shim: Shim) -> None:
    shim.say("0.Memory_v2 !4")
    assert only(nvml.read()).memory.answer is Answer.NOT_PERMITTED
    shim.say("0.Memory_v2 !25")
    assert only(nvml.read()).memory.value == Memory(total=150754820096, used=644939776, reserved=None)


def test_a_field_is_read_by_its_type(shim: Shim) -> None:
    shim.say(
        "0.field.1 5 4294967288", "0.field.2 3 18446744073709551615", "0.field.3 0 7", "0.field.4 9 1", "0.field.5 6 9"
    )
    with session.session() as opened:
        assert isinstance(opened, session.Session)
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        values = [opened.field(handle, number).value for number in (1, 2, 3, 4, 5)]
    assert values == [-8, 2**64 - 1, 7, None, 9]


def test_counters_advance(shim: Shim) -> None:
    shim.say("0.field.83 3 1000+250")
    with session.session() as opened:
        assert isinstance(opened, session.Session)
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        assert [opened.field(handle, 83).value for _ in range(3)] == [1000, 1250, 1500]


def test_a_gpu_that_is_lost_while_it_is_read_says_so(shim: Shim) -> None:
    shim.say("1.lost_after 12", gpus=2)
    well, lost = nvml.read().gpus
    assert lost.name.value == "NVIDIA H200"
    assert lost.pcie_width.answer is lost.processes.answer is Answer.FAILED
    assert "15 GPU is lost" in lost.pcie_width.evidence
    assert Answer.FAILED not in answers(well).values()


@pytest.mark.parametrize("line", ["1.lost_after 0", "1.handle !15", "1.UUID !15"])
def test_a_gpu_that_cannot_be_named_does_not_disappear(shim: Shim, line: str) -> None:
    shim.say(line, gpus=2)
    well, lost = nvml.read().gpus
    assert (well.index, lost.index, lost.uuid) == (0, 1, "unnamed-1")
    assert set(answers(lost).values()) == {Answer.FAILED}
    assert well.p2p == {}


def test_links_errors_fabric_and_peers_of_several_gpus(shim: Shim) -> None:
    links = [f"*.link.{link} {1 if link != 3 else 0}" for link in range(18)]
    shim.say(*links, "*.field.161 3 2", "*.Fabric 3 0 85 1", "*.p2p.0 0 0 0", "*.p2p.1 0 0 4", gpus=2)
    one, other = nvml.read().gpus
    assert one.nvlinks.value == (1, 1, 1, 0, *[1] * 14)
    assert one.nvlink_errors.value == 36
    assert one.fabric.value == Fabric(state=3, status=0, health_mask=85, health_summary=1)
    assert one.p2p == {other.uuid: Reading((0, 0, 4), evidence="nvmlDeviceGetP2PStatus")}
    assert other.p2p[one.uuid].value == (0, 0, 0)


def test_an_older_driver_says_less_of_the_fabric(shim: Shim) -> None:
    shim.say("0.fabric_v2_only 1", "0.Fabric 3 0 85 1")
    assert only(nvml.read()).fabric.value == Fabric(state=3, status=0, health_mask=85, health_summary=None)


def test_power_profiles_are_bits(shim: Shim) -> None:
    shim.say("0.PowerProfiles 65")
    assert only(nvml.read()).power_profiles.value == PowerProfiles(requested=(0, 6), enforced=(0, 6))


def test_processes_are_named_once_and_those_of_no_number_here_are_not_ours(shim: Shim, tmp_path: Path) -> None:
    folder = tmp_path / "proc" / "41"
    folder.mkdir(parents=True)
    (folder / "cmdline").write_bytes(b"/usr/bin/dcgm-exporter\0-f\0")
    shim.say("0.process 41 1048576", "0.process 4000", "0.mps_process 41 5", "0.mps_process 4001 7")
    found = only(nvml.read(proc=tmp_path / "proc")).processes.value
    assert found is not None
    exporter, *others = found
    assert (exporter.pid, exporter.name, exporter.here) == (41, "/usr/bin/dcgm-exporter", True)
    assert exporter.memory_bytes == 1048576
    assert others == [Process(pid=4000, here=False), Process(pid=4001, memory_bytes=7, here=False)]


def test_utilisation_is_the_largest_of_a_while(shim: Shim) -> None:
    shim.say("0.Utilization 0+1")
    assert only(nvml.read(idle_s=2.0, clock=FakeClock())).utilisation_percent.value == 10


def test_a_driver_that_hangs_is_unknown_within_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()
    monkeypatch.setattr(machine, "_read", lambda *_: released.wait())
    found = nvml.read(timeout_s=0.05)
    released.set()
    assert found.driver.answer is Answer.UNKNOWN
    assert found.driver.evidence == "NVML: no answer within 0.05 s"


def test_bytes_are_text(monkeypatch: pytest.MonkeyPatch) -> None:
    old: Any = SimpleNamespace(NVMLError=pynvml.NVMLError, nvmlDeviceGetName=lambda _: b"NVIDIA H200")
    assert session.Session(old).ask("nvmlDeviceGetName", 0).value == "NVIDIA H200"


def test_the_binding_loads_the_library_by_the_drivers_name(tmp_path: Path) -> None:
    facts = tmp_path / "facts"
    facts.write_text("driver 1.2\ncount 0\n")
    code = "from pytest_llmperf.telemetry import nvml; print(nvml.read().driver.value)"
    environment = {"NVML_SHIM": str(facts), "LD_LIBRARY_PATH": str(library().parent), "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "1.2\n"


def test_gpus_are_found_by_name_and_one_that_is_lost_is_not(shim: Shim) -> None:
    shim.say("1.handle !15", gpus=3)
    assert [gpu.index for gpu in nvml.find()] == [0, 2]
    assert nvml.find()[1] == NamedGpu(2, "GPU-00000002-0000-0000-0000-000000000000", "NVIDIA H200")
    assert nvml.names() == ("NVIDIA H200", "NVIDIA H200")
    shim.say("init !9")
    assert nvml.find() == ()
    assert nvml.names() == ()


def test_setters_obey_refuse_and_lie(shim: Shim) -> None:
    """Of the shim itself: what will be built on it must be able to rely on it."""
    shim.say("0.SetPersistenceMode lie", "1.SetPersistenceMode !4", "2.SetPowerManagementLimit !2", gpus=3)
    pynvml.nvmlInit()
    one, two, three = (pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(3))
    pynvml.nvmlDeviceSetPersistenceMode(one, 0)
    with pytest.raises(pynvml.NVMLError_NoPermission):
        pynvml.nvmlDeviceSetPersistenceMode(two, 0)
    pynvml.nvmlDeviceSetPersistenceMode(three, 0)
    pynvml.nvmlDeviceSetPowerManagementLimit(one, 500000)
    gpus = nvml.read().gpus
    assert [gpu.persistence.value for gpu in gpus] == [True, True, False]
    assert [gpu.power_limit_enforced_mw.value for gpu in gpus] == [500000, 700000, 700000]
    assert shim.setters()[-1] == "0.SetPowerManagementLimit 500000"
