"""How long a run that heat has spoilt waits before it is made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.clock import FakeClock
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.run import Run
from pytest_llmperf.pipeline import cooling, measure
from pytest_llmperf.pipeline.cooling import MOST_S, POLL_S, cool_down, overheated
from pytest_llmperf.pipeline.execute import Trial
from pytest_llmperf.telemetry.nvml.temperature import temperatures
from tests.nvml_shim.shim import install
from tests.unit.pipeline import fakes
from tests.unit.pipeline.fakes import Bench

HEAT = Finding(check="during_sw_thermal", status=Status.FAIL, policy="require", value="GPU-a")


def spoilt(before_c: Mapping[str, int], *findings: Finding) -> Trial:
    run = cast("Run", SimpleNamespace(findings=findings or (HEAT,)))
    return Trial(run, {}, before_c)


def waited_s(before_c: Mapping[str, int], *seen: Mapping[str, int], at_most_s: float = MOST_S) -> float:
    """With these temperatures one after the other, of which the last one stays."""
    clock, looks = FakeClock(), list(seen)
    cool_down(spoilt(before_c), clock, at_most_s=at_most_s, read=lambda: looks.pop(0) if len(looks) > 1 else looks[0])
    return clock.now_ns / 1e9


def test_it_ends_when_all_are_about_as_cool_as_before() -> None:
    before = {"GPU-a": 40, "GPU-b": 50}
    hot = [{"GPU-a": 80, "GPU-b": 50}, {"GPU-a": 44, "GPU-b": 60}, {"GPU-a": 43, "GPU-b": 53}]
    assert waited_s(before, *hot) == 2 * POLL_S
    assert waited_s(before, hot[-1]) == 0


def test_it_ends_at_its_bound() -> None:
    assert waited_s({"GPU-a": 40}, {"GPU-a": 80}) == MOST_S
    assert waited_s({"GPU-a": 40}, {"GPU-a": 80}, at_most_s=7) == 7
    assert waited_s({"GPU-a": 40}, {"GPU-a": 80}, at_most_s=-1) == 0


@pytest.mark.parametrize("seen", [{}, {"GPU-b": 90}])
def test_who_does_not_answer_is_not_waited_for(seen: Mapping[str, int]) -> None:
    assert waited_s({"GPU-a": 40}, seen) == 0


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 100)),
    st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 120)), min_size=1),
    st.floats(min_value=-10, max_value=1000),
)
def test_no_temperatures_hold_it_longer_than_the_bounds(
    before_c: Mapping[str, int], seen: list[Mapping[str, int]], at_most_s: float
) -> None:
    assert waited_s(before_c, *seen, at_most_s=at_most_s) <= max(min(at_most_s, MOST_S), 0) + 1e-6


@pytest.mark.parametrize(
    ("finding", "hot"),
    [
        (HEAT, True),
        (replace(HEAT, check="during_hw_thermal"), True),
        (replace(HEAT, check="during_power_brake"), False),
        (replace(HEAT, policy="warn"), False),
        (replace(HEAT, status=Status.UNKNOWN), False),
    ],
)
def test_only_heat_is_waited_out(finding: Finding, *, hot: bool) -> None:
    assert overheated((finding,)) is hot
    clock = FakeClock()
    cool_down(spoilt({"GPU-a": 40}, finding), clock, read=lambda: {"GPU-a": 80})
    assert bool(clock.now_ns) is hot


def test_temperatures_are_those_that_the_driver_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shim = install(monkeypatch, tmp_path)
    shim.say("0.Temperature.0 71", "1.handle !15", "2.Temperature.0 !4", gpus=3)
    assert temperatures() == {"GPU-00000000-0000-0000-0000-000000000000": 71}
    shim.facts.write_text("init !9\n")
    assert temperatures() == {}


def test_a_run_that_heat_has_spoilt_is_made_again_after_a_pause_and_the_last_one_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(fakes, "INVALID", HEAT)
    monkeypatch.setattr(cooling, "cool_down", lambda *_, at_most_s, **__: pauses.append(at_most_s))
    bench = Bench(
        tmp_path,
        fakes.case(tmp_path, fakes.gate("output_throughput")),
        lambda _, __: {"output_throughput": 100.0, "invalid": 1},
        time_left_s=lambda: 33.0,
    )
    bench.work.run_candidate(1)
    assert bench.roles() == ["candidate"] * (1 + measure.REPLACEMENTS)
    assert pauses == [33.0] * measure.REPLACEMENTS
    assert len(bench.work.trials) == 1
