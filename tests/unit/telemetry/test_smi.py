"""nvidia-smi as text: what was recorded, what is refused, and what nobody understands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.clock import CLOCK
from pytest_llmperf.model.gpu import Vboost
from pytest_llmperf.model.reading import Answer
from pytest_llmperf.telemetry import smi

DATA = Path(__file__).parents[2] / "data" / "gpu"
SLIDER = (DATA / "h200_boost_slider.txt").read_text(encoding="utf-8")
COUNTERS = (DATA / "h200_counters.csv").read_text(encoding="utf-8")
XML = (DATA / "h200_q_x.xml").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs are looked for first."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def fake(folder: Path, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)


def test_the_recorded_slider_is_read(folder: Path) -> None:
    fake(folder, f"test \"$*\" = 'boost-slider -l' && cat <<'END'\n{SLIDER}\nEND")
    found = smi.vboost()
    assert found.value == {0: Vboost(current=0, maximum=4)}
    assert found.evidence == "nvidia-smi boost-slider -l"


def test_several_gpus() -> None:
    row = "|   0     vboost           4              0       |"
    text = SLIDER.replace(row, f"{row}\n|   1     vboost           4              4       |")
    assert smi.vboosts(text)[1] == Vboost(current=4, maximum=4)


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        (3, Answer.UNSUPPORTED),
        (4, Answer.NOT_PERMITTED),
        (9, Answer.UNSUPPORTED),
        (12, Answer.UNSUPPORTED),
        (13, Answer.UNSUPPORTED),
        (14, Answer.UNKNOWN),
        (15, Answer.FAILED),
        (255, Answer.UNKNOWN),
        (1, Answer.UNKNOWN),
    ],
)
def test_exit_statuses_are_nvmls_return_codes(folder: Path, code: int, answer: Answer) -> None:
    fake(folder, f"echo 'Boost Slider is not supported on this device.' >&2; exit {code}")
    found = smi.vboost()
    assert (found.value, found.answer) == (None, answer)
    assert found.evidence == (f"nvidia-smi boost-slider -l: exit {code}: Boost Slider is not supported on this device.")


def test_a_refusal_that_exits_with_0_is_no_value(folder: Path) -> None:
    fake(folder, "echo 'Setting is not supported'; exit 0")
    found = smi.vboost()
    assert (found.value, found.answer) == (None, Answer.UNKNOWN)
    assert "Setting is not supported" in found.evidence


def test_one_that_hangs_is_ended_with_what_it_started(folder: Path, tmp_path: Path) -> None:
    fake(folder, f"sleep 600 & echo $! > {tmp_path}/child; wait")
    found = smi.run("boost-slider", "-l", timeout_s=2.0)
    assert (found.answer, "no answer within 2 s" in found.evidence) == (Answer.UNKNOWN, True)
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "stat"
    for _ in range(200):  # it dies a moment after the signal
        if ended(child):
            return
        CLOCK.sleep(0.05)
    pytest.fail("the child lives")


def ended(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_without_the_program_it_is_unsupported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert smi.vboost().answer is Answer.UNSUPPORTED


def test_a_program_that_may_not_be_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "nvidia-smi").write_text("")
    monkeypatch.setenv("PATH", str(folder))
    assert smi.vboost().answer is Answer.NOT_PERMITTED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no GPUs",
        SLIDER.replace("vboost", "nboost"),
        SLIDER.replace("4  ", "x  "),
        SLIDER.replace("0       |", "9       |"),
    ],
)
def test_a_table_that_is_not_understood_is_no_table(text: str) -> None:
    with pytest.raises(ValueError, match="no table of boost sliders"):
        smi.vboosts(text)


@given(st.text())
def test_no_text_makes_a_parser_fail_in_another_way(text: str) -> None:
    for parse in (smi.vboosts, smi.counters, smi.smoothings):
        try:
            parse(text)
        except ValueError:
            continue


def test_counters_have_names_and_are_nanoseconds() -> None:
    assert smi.counters(COUNTERS) == {
        "GPU-00000000-0000-0000-0000-000000000000": {
            "power_cap_ns": 10_961_959_000,
            "sw_thermal_ns": 0,
            "hw_thermal_ns": 0,
            "power_brake_ns": 0,
        }
    }


def test_a_counter_that_a_gpu_has_not_is_left_out() -> None:
    found = smi.counters(COUNTERS.replace("10961959 us, 0 us", "[N/A], 0 us"))
    assert "power_cap_ns" not in next(iter(found.values()))


@pytest.mark.parametrize(
    "text", ["", COUNTERS.replace("sw_power_cap", "other"), COUNTERS.replace("10961959 us", "ten")]
)
def test_another_table_is_no_table_of_counters(text: str) -> None:
    with pytest.raises(ValueError, match=r"no table|no counter"):
        smi.counters(text)


@pytest.mark.parametrize(
    ("element", "value", "answer"),
    [
        ("<power_smoothing>N/A</power_smoothing>", None, Answer.UNSUPPORTED),
        ("", None, Answer.UNSUPPORTED),
        ("<power_smoothing><state>Enabled</state></power_smoothing>", True, Answer.KNOWN),
        ("<power_smoothing><state>Disabled</state></power_smoothing>", False, Answer.KNOWN),
        ("<power_smoothing><floor>90</floor></power_smoothing>", None, Answer.UNKNOWN),
    ],
)
def test_power_smoothing(element: str, value: bool | None, answer: Answer) -> None:
    found = smi.smoothings(XML.replace("<power_smoothing>N/A</power_smoothing>", element))["00000000:00:06.0"]
    assert (found.value, found.answer) == (value, answer)
