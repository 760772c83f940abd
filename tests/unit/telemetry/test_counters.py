"""Counters by the names that do not change, over the scripted library and a scripted nvidia-smi."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_llmperf.model.reading import Answer
from pytest_llmperf.telemetry import counters
from tests.nvml_shim.shim import Shim, install

CSV = (Path(__file__).parents[2] / "data" / "gpu" / "h200_counters.csv").read_text(encoding="utf-8")
UUID = "GPU-00000000-0000-0000-0000-000000000000"


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shim:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return install(monkeypatch, tmp_path)


def smi(folder: Path, script: str) -> None:
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "nvidia-smi").chmod(0o755)


def test_names_win_over_numbers(shim: Shim, tmp_path: Path) -> None:
    smi(tmp_path, f"cat <<'END'\n{CSV}END")
    shim.say("0.field.74 3 7", "0.field.269 3 9", "0.field.251 3 11")
    found = counters.read()[UUID]
    assert (found.power_cap_ns.value, found.sw_thermal_ns.value, found.hw_thermal_ns.value) == (10_961_959_000, 0, 0)
    assert found.energy_mj.value == 2191133
    assert found.ecc_uncorrected.value == found.pcie_replays.value == found.sync_boost_ns.value == 0
    assert found.nvlink_errors.answer is Answer.UNSUPPORTED
    assert found.source == "nvidia-smi: clocks_event_reasons_counters"
    assert shim.setters() == []


def test_without_names_only_numbers_that_never_changed_are_used(shim: Shim, tmp_path: Path) -> None:
    smi(tmp_path, "echo 'Field is not a valid field to query.'; exit 2")
    shim.say("0.field.74 3 7", "0.field.75 3 8", "0.field.270 3 9", "0.field.252 3 11")
    found = counters.read()[UUID]
    assert (found.power_cap_ns.value, found.sw_thermal_ns.value) == (7, 8)
    assert found.hw_thermal_ns.answer is found.power_brake_ns.answer is Answer.UNSUPPORTED
    assert "exit 2" in found.hw_thermal_ns.evidence
    assert found.source == "NVML fields 74 and 75"


def test_a_counter_that_the_table_lacks(shim: Shim, tmp_path: Path) -> None:
    text = CSV.replace("us, 0 us, 0 us, 0 us", "us, 0 us, [N/A], 0 us")
    smi(tmp_path, f"cat <<'END'\n{text}END")
    assert counters.read()[UUID].hw_thermal_ns.answer is Answer.UNSUPPORTED


def test_without_a_driver_there_are_none(shim: Shim) -> None:
    shim.say("init !9")
    assert counters.read() == {}
