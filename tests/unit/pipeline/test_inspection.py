"""What a suite sees of the machine before a start and after it, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_llmperf.checks.conditions import GPU_CONDITIONS
from pytest_llmperf.errors import UnfitError
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gpu import Process
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.model.suite import Arm, Hardware, Model, Suite
from pytest_llmperf.pipeline.inspection import Inspection
from pytest_llmperf.pipeline.servers import Server
from pytest_llmperf.telemetry import processes
from tests.machines import board, h200, with_gpu, with_host
from tests.unit.pipeline.fakes import case

ENGINE_PID = 4242
ON_A_GPU = Hardware(gpu="H200", count=1)


@pytest.fixture(autouse=True)
def tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "tree", lambda pid: frozenset({pid, pid + 1}))


class Machine:
    """Answers with one snapshot after another, the last one for ever; notes what was asked."""

    def __init__(self, *snapshots: Snapshot) -> None:
        self.snapshots = list(snapshots)
        self.asked: list[dict[str, Any]] = []

    def __call__(self, **asked: Any) -> Snapshot:
        self.asked.append(asked)
        return self.snapshots.pop(0) if len(self.snapshots) > 1 else self.snapshots[0]


def server(url: str = "http://127.0.0.1:9", said: object = None, *, ours: bool = True, **of_the_arm: Any) -> Server:
    arm = Arm(name="a", engine="external", model=Model(id="m"), options={"url": url}, **of_the_arm)
    process = SimpleNamespace(pid=ENGINE_PID) if ours else None
    found = Server(
        arm=arm,
        endpoint=Endpoint(url=url, model="m"),
        process=cast("Any", process),
        folder=Path(),
        session="s",
        key="k",
        ready_s=1.0,
    )
    object.__setattr__(found, "ask", lambda _: said)
    return found


def suite(hardware: Hardware = ON_A_GPU, strict: bool = False, **expected: Expectation) -> Suite:
    return replace(case(Path()).suite, hardware=hardware, strict=strict, preconditions=expected)


def inspected(*snapshots: Snapshot, running: tuple[Server, ...] = ()) -> tuple[Inspection, Machine]:
    machine = Machine(*snapshots)
    return Inspection(running=lambda: running, read=machine), machine


def by_name(findings: tuple[Finding, ...]) -> Mapping[str, Finding]:
    return {finding.check: finding for finding in findings}


def test_before_a_start_the_engine_s_own_is_not_asked() -> None:
    looking, machine = inspected(h200())
    found = by_name(looking.at_rest(suite(**{"env.X": cast("Any", Expectation(value="1"))}), {}, fresh=True))
    waits = {name for name, finding in found.items() if finding.status is Status.AT_START}
    assert waits == {"pdl", "environment", "harmful_environment", "rank_memory", "env.X"}
    assert not [str(finding) for finding in found.values() if finding.invalidates or finding.unverified]
    looking.at_rest(suite(), {}, fresh=False)
    assert len(machine.asked) == 1
    looking.at_rest(suite(), {}, fresh=True)
    assert len(machine.asked) == 2


def test_a_required_value_that_is_not_there_names_the_command() -> None:
    looking, _ = inspected(h200())
    found = looking.at_rest(suite(vboost=Expectation(policy="require", value="4")), {}, fresh=True)
    assert [str(finding) for finding in found if finding.invalidates] == [
        "vboost: 0 of 4 (expected 4); nvidia-smi boost-slider -i 0 --vboost 4"
    ]


def test_a_suite_for_any_hardware_asks_nothing_of_the_gpus() -> None:
    looking, _ = inspected(with_gpu(h200(), persistence=False))
    found = by_name(looking.at_rest(suite(Hardware()), {}, fresh=True))
    assert not found.keys() & {each.name for each in GPU_CONDITIONS}
    assert not [str(finding) for finding in found.values() if finding.status is Status.FAIL]


def test_only_the_gpus_of_the_case_are_looked_at() -> None:
    looking, _ = inspected(with_gpu(board(4), 3, persistence=False))
    three, four = (suite(replace(ON_A_GPU, count=count)) for count in (3, 4))
    assert not [each.check for each in looking.at_rest(three, {}, fresh=True) if each.invalidates]
    assert [each.check for each in looking.at_rest(four, {}, fresh=False) if each.invalidates] == ["persistence_mode"]


def test_our_engines_are_no_strangers() -> None:
    held = with_gpu(h200(), processes=(Process(pid=ENGINE_PID + 1, memory_bytes=1 << 30, name="engine"),))
    looking, _ = inspected(held)
    assert by_name(looking.at_rest(suite(), {}, fresh=True))["foreign_processes"].status is Status.FAIL
    ours, machine = inspected(held, running=(server(),))
    assert by_name(ours.under(suite(), server(), {}))["foreign_processes"].status is Status.PASS
    assert machine.asked == [{"pid": ENGINE_PID, "idle_s": 0.0}]


def test_the_engine_s_environment_counts_and_is_read_once_a_start() -> None:
    looking, machine = inspected(with_host(h200(), environment={"TRTLLM_ENABLE_PDL": "0", "NCCL_NVLS_ENABLE": "1"}))
    wanted: dict[str, Any] = {"env.NCCL_NVLS_ENABLE": Expectation(policy="require", value="1"),
              "pdl": Expectation(policy="require", value="on")}  # fmt: skip
    found = by_name(looking.under(suite(**wanted), server(), {}))
    assert found["env.NCCL_NVLS_ENABLE"].status is Status.PASS
    assert (found["pdl"].status, found["pdl"].value) == (Status.FAIL, "off")
    with pytest.raises(UnfitError, match=r"a: pdl: off \(expected on\); export TRTLLM_ENABLE_PDL=1"):
        looking.require(suite(**wanted), server())
    assert len(machine.asked) == 1


def test_an_engine_that_has_just_loaded_its_model_is_no_busy_neighbour() -> None:
    busy = with_gpu(with_host(h200(), cpu_pressure_percent=60.0), margin_c=2)
    looking, _ = inspected(busy)
    assert [each.check for each in looking.at_rest(suite(), {}, fresh=True) if each.invalidates] == ["cpu_pressure"]
    looking.require(suite(), server())
    with pytest.raises(UnfitError, match="cpu_pressure"):  # of somebody else: it has loaded long ago
        looking.require(suite(), server(ours=False))


def test_our_own_last_run_is_no_busy_neighbour_of_the_next_start() -> None:
    looking, _ = inspected(h200(), with_gpu(with_host(h200(), cpu_pressure_percent=60.0), persistence=False))
    assert not [each.check for each in looking.at_rest(suite(), {}, fresh=True) if each.invalidates]
    assert [each.check for each in looking.at_rest(suite(), {}, fresh=True) if each.invalidates] == ["persistence_mode"]


def test_an_engine_whose_process_is_not_known_has_no_environment() -> None:
    looking, _ = inspected(with_host(h200(), environment={"OURS": "1"}))
    stranger = server(ours=False)
    assert by_name(looking.under(suite(), stranger, {}))["environment"].status is Status.UNKNOWN
    assert "environment" not in looking.facts(suite(), stranger)
    assert by_name(looking.under(suite(strict=True), stranger, {}))["environment"].status is Status.UNKNOWN


def test_a_machine_elsewhere_is_unverified_and_never_looked_at() -> None:
    looking, machine = inspected(h200())
    far = server("http://10.0.0.1:9", ours=False)
    wanted: dict[str, Any] = {"vboost": Expectation(policy="require", value="4"), "ecc": Expectation(policy="ignore")}
    [found] = looking.under(suite(**wanted), far, {})
    assert (found.check, found.unverified, found.value) == ("vboost", True, "the engine runs at 10.0.0.1")
    assert looking.under(suite(strict=True, **wanted), far, {})[0].invalidates
    assert (looking.facts(suite(), far), machine.asked) == ({}, [])


def test_facts_are_the_class_what_is_compared_and_what_the_engine_was_given_beside_the_arm() -> None:
    looking, _ = inspected(with_host(h200(), environment={"OMP_NUM_THREADS": "4", "NCCL_DEBUG": "WARN"}))
    facts = looking.facts(suite(governor=Expectation(policy="compare")), server(env={"NCCL_DEBUG": "WARN"}))
    assert facts["environment"] == "OMP_NUM_THREADS=4"
    assert facts["machine.vboost"] == "0"
    assert facts["machine.ecc"] == "on"
    assert facts["machine.gpu_power_limit"] == "700 W"
    assert facts["machine.gpu_part"] == h200().gpus[0].part_number.value
    assert "machine.gpu_identity" not in facts
    assert "machine.governor" not in facts, "it could not be read"
    assert "machine.persistence_mode" not in facts, "required, not compared"


def test_what_was_compared_shows_before_any_load() -> None:
    looking, _ = inspected(h200())
    found = by_name(looking.at_rest(suite(), {"machine.vboost": "4", "workload": "sha256:w"}, fresh=True))
    assert found["vboost"].incomparable
    assert found["vboost"].expected == "4, as in the baseline"


SAID = {"enable_dp_attention": False, "dp_size": 1, "nested": {"chunk": 8}, "api_key": "sk-123"}


def test_what_is_not_in_effect_stops_the_load() -> None:
    looking, _ = inspected(h200())
    asked = {"dp_size": "1", "enable_dp_attention": "true", "chunk": "8.0", "unheard_of": "1"}
    found = by_name(looking.under(suite(), server(said=SAID, expect=asked), {}))
    assert {name: finding.status for name, finding in found.items() if name.startswith("expect.")} == {
        "expect.dp_size": Status.PASS,
        "expect.enable_dp_attention": Status.FAIL,
        "expect.chunk": Status.PASS,
        "expect.unheard_of": Status.UNKNOWN,
    }
    with pytest.raises(UnfitError, match="asked true, in effect false") as caught:
        looking.require(suite(), server(said=SAID, expect=asked))
    assert "unheard_of" not in str(caught.value)
    with pytest.raises(UnfitError, match="unheard_of"):
        looking.require(suite(strict=True), server(said=SAID, expect=asked))


def test_an_engine_that_says_nothing_is_unverified() -> None:
    looking, _ = inspected(h200())
    silent = server(expect={"dp_size": "8"})
    assert by_name(looking.under(suite(), silent, {}))["expect.dp_size"].unverified
    looking.require(suite(), silent)
    with pytest.raises(UnfitError, match="does not say what is in effect"):
        looking.require(suite(strict=True), silent)
