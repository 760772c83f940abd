"""A session on a machine with GPUs (the driver's library is a stand-in): heat makes it INVALID, and nothing is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.telemetry import telemetry_file
from tests.nvml_shim.shim import Shim, library
from tests.projects import Outcome, Project

SUITE = """\
suite: chat
why: A suite of the tests, on two GPUs.
model: {id: fake, weights: dummy}
hardware: {gpu: H200, count: 2}
preconditions: {cpu_pressure: record, idle_utilisation: record, throttle: record}
telemetry: {interval: 100ms}
stall_timeout: 5s
engines:
  good: {engine: scripted, gap_s: 0.02}
workloads:
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 12, concurrency: 4}
warmup: {requests: 1}
gates:
  output_throughput: {margin: 60%, cv: 10%}
  tokens_per_joule: {margin: 60%, cv: 10%}
"""
HOT = "GPU-00000001-0000-0000-0000-000000000000"


class Machine:
    """Two GPUs that others see through the environment."""

    def __init__(self, folder: Path) -> None:
        self.shim = Shim(library(), folder / "nvml.facts")
        self.environment: dict[str, Any] = {
            "LD_LIBRARY_PATH": str(self.shim.library.parent),
            "NVML_SHIM": str(self.shim.facts),
            "CUDA_VISIBLE_DEVICES": "0,1",
        }
        self.say()

    def say(self, *lines: str) -> None:
        busy = ("*.CurrentClocksEventReasons 0", "*.ClockInfo.1 1980", "*.TotalEnergyConsumption 1000+70000")
        self.shim.say(*lines, *busy, gpus=2)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def recorded(project: Project, machine: Machine) -> Project:
    project.write(SUITE)
    outcome = project.run("suites", "--llmperf-accept=missing", "--llmperf-why=a test", **machine.environment)
    assert outcome.code == 0, outcome.text
    return project


def measured(outcome: Outcome) -> list[dict[str, Any]]:
    return [run for run in outcome.run_files if run["llmperf"]["role"] == "candidate"]


def test_a_healthy_machine_passes_and_tells_what_it_took(recorded: Project, machine: Machine) -> None:
    outcome = recorded.run("suites", **machine.environment)
    assert outcome.code == 0, outcome.text
    words = {verdict["metric"]: verdict["word"] for verdict in outcome.cases["good/short"]["verdicts"]}
    assert words == {"output_throughput": "PASSED", "tokens_per_joule": "PASSED"}
    run = measured(outcome)[-1]
    assert run["energy_j"] == run["llmperf"]["energy_j"] == 140.0
    assert run["tokens_per_joule"] == 12 * 16 / 140
    assert run["llmperf"]["environment"]["sm_clock_mhz"] == "1980"
    found = {each["check"]: each["status"] for each in run["llmperf"]["findings"]}
    assert (found["telemetry"], found["telemetry_sampler"], found["during_sw_thermal"]) == ("pass", "pass", "pass")
    folder = recorded.folder / ".llmperf" / "runs" / run["llmperf"]["id"]
    telemetry = telemetry_file.read(folder)
    assert telemetry is not None
    assert [len(gpu.samples) for gpu in telemetry.gpus] == [telemetry.ticks[1] - telemetry.ticks[0]] * 2
    assert not (folder / "sampler.log").exists()
    warm = next(run["llmperf"]["id"] for run in outcome.run_files if run["llmperf"]["role"] == "warmup")
    assert not list((recorded.folder / ".llmperf" / "runs" / warm).glob("telemetry*"))
    assert recorded.left_behind() == []


def test_a_gpu_that_is_slowed_down_by_heat_is_named_and_the_case_is_invalid(
    recorded: Project, machine: Machine
) -> None:
    machine.say("1.CurrentClocksEventReasons 0x20", "1.ClockInfo.1 1200")
    before = len(measured(Outcome(0, "", recorded.folder)))
    outcome = recorded.run("suites", **machine.environment)
    assert outcome.code == 1, outcome.text
    assert {verdict["word"] for verdict in outcome.cases["good/short"]["verdicts"]} == {"INVALID"}
    assert "during_sw_thermal" in outcome.text
    assert f"{HOT} on " in outcome.text
    assert len(measured(outcome)) - before == 3  # it was tried again
    failed = {each["check"] for each in measured(outcome)[-1]["llmperf"]["findings"] if each["status"] == "fail"}
    assert failed == {"during_sw_thermal", "during_straggler"}


def test_a_gpu_that_is_lost_in_mid_run_is_named(project: Project, machine: Machine) -> None:
    project.write(SUITE.replace("gap_s: 0.02", "gap_s: 0.1"))
    recording = ("--llmperf-accept=missing", "--llmperf-why=a test")
    with project.started("suites", *recording, **machine.environment) as process:
        project.wait_for(".llmperf/runs/*/telemetry.jsonl")
        machine.say("1.lost_after 0")
        outcome = project.outcome(process)
    assert outcome.code == 1, outcome.text
    assert "INVALID" in outcome.text
    assert "telemetry_gpus: NVML lists 1 of 2 GPUs" in outcome.text
    first = measured(outcome)[0]
    (lost,) = (each for each in first["llmperf"]["findings"] if each["check"] == "during_gpu_lost")
    assert lost["status"] == "fail"
    assert HOT in lost["value"]
    assert "energy_j" not in first


def test_off_is_off(project: Project, machine: Machine) -> None:
    project.write(SUITE.replace("telemetry: {interval: 100ms}", "telemetry: off").replace("  tokens_per_joule", "  #"))
    outcome = project.run("suites", "--llmperf-accept=missing", "--llmperf-why=a test", **machine.environment)
    assert outcome.code == 0, outcome.text
    assert not list(project.folder.glob(".llmperf/runs/*/telemetry*"))
    assert "energy_j" not in measured(outcome)[-1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_session_that_is_ended_leaves_no_sampler(project: Project, machine: Machine, number: signal.Signals) -> None:
    project.write(SUITE.replace("gap_s: 0.02", "gap_s: 0.2"))
    recording = ("--llmperf-accept=missing", "--llmperf-why=a test")
    with project.started("suites", *recording, **machine.environment) as process:
        project.wait_for(".llmperf/runs/*/telemetry.jsonl")
        samplers = [pid for pid, line in project.processes() if "telemetry.sampler" in line]
        assert len(samplers) == 1
        os.kill(process.pid, number)
        process.wait(30)
    left = project.left_behind()
    if number is signal.SIGKILL:  # this engine does not notice, and nobody is left who could stop it
        for pid in [pid for pid, line in left if "fake_server" in line]:
            os.kill(pid, signal.SIGKILL)
        left = project.left_behind()
    assert left == []
