"""The whole machine as one snapshot, over the scripted library, a scripted nvidia-smi and files of our own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.clock import FakeClock
from pytest_llmperf.model.gpu import Vboost
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.telemetry import machine, nvml, smi
from pytest_llmperf.telemetry.hostfacts import Roots
from tests.nvml_shim.shim import Shim, install

DATA = Path(__file__).parents[2] / "data" / "gpu"


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    return Roots(proc=tmp_path / "proc", sys=tmp_path / "sys", dev=tmp_path / "dev", root=tmp_path)


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shim:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in\n-q) cat {DATA}/h200_q_x.xml;;\n*) cat {DATA}/h200_boost_slider.txt;;\nesac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return install(monkeypatch, tmp_path)


def test_an_h200_is_read_whole_and_nothing_is_set(shim: Shim, roots: Roots) -> None:
    node = roots.sys / "bus/pci/devices/0000:00:06.0/numa_node"
    node.parent.mkdir(parents=True)
    node.write_text("0\n")
    clock = FakeClock()
    snapshot = machine.read(roots=roots, clock=clock)
    (gpu,) = snapshot.gpus
    assert (snapshot.origin, snapshot.taken) == ("live", "2026-01-01T00:00:02+00:00")
    assert gpu.vboost.value == Vboost(current=0, maximum=4)
    assert gpu.power_smoothing.answer is Answer.UNSUPPORTED
    assert gpu.numa_node.value == 0
    assert shim.setters() == []


def test_a_gpu_without_a_row_has_no_slider(shim: Shim, roots: Roots) -> None:
    shim.say(gpus=2)
    _, second = machine.read(roots=roots, clock=FakeClock()).gpus
    assert (second.vboost.answer, "no row for GPU 1" in second.vboost.evidence) == (Answer.UNSUPPORTED, True)


def test_persistence_mode_is_read_again_once_its_daemon_had_time(shim: Shim, roots: Roots) -> None:
    """gpud#431: off just after boot."""

    class Booting(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if seconds == machine.SETTLE_S:
                shim.say()

    shim.say("0.PersistenceMode 0")
    clock = Booting()
    assert machine.read(roots=roots, idle_s=0, clock=clock).gpus[0].persistence.value is True
    assert clock.now_ns == machine.SETTLE_S * 1e9


def test_without_a_driver_nobody_waits_and_no_program_is_started(
    shim: Shim, roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim.say("init !9")
    monkeypatch.setattr(smi, "run", lambda *_: pytest.fail("started"))
    clock = FakeClock()
    snapshot = machine.read(roots=roots, clock=clock)
    assert (snapshot.gpus, snapshot.driver.answer, clock.now_ns) == ((), Answer.UNSUPPORTED, 0)


def test_a_driver_that_hangs_costs_its_bound_alone(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    silent: Reading[Any] = lacking(Answer.UNKNOWN, "NVML: no answer within 60 s")
    monkeypatch.setattr(nvml, "read", lambda **_: nvml.Gpus(driver=silent, cuda=silent, confidential_compute=silent))
    assert machine.read(roots=roots, clock=FakeClock()).driver.answer is Answer.UNKNOWN
