"""The schedule of the sampler on a clock that only moves when told: late, lost and dear looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.clock import FakeClock
from pytest_llmperf.model.reading import Reading
from pytest_llmperf.telemetry import sampler
from pytest_llmperf.telemetry.nvml.session import Session, session
from pytest_llmperf.telemetry.sampler import Device, Order, watch
from tests.nvml_shim.shim import Shim, install

INTERVAL_NS = 500_000_000


@dataclass
class Slow:
    """A device whose looks take these seconds, then none."""

    clock: FakeClock
    takes_s: list[float] = field(default_factory=list)

    def newcomers(self) -> Iterator[dict[str, Any]]:
        yield {"process": {"pid": 1}}

    def look(self, tick: int) -> Iterator[dict[str, Any]]:
        yield {"tick": tick, "at_ns": self.clock.now_ns}
        self.clock.sleep(self.takes_s.pop(0) if self.takes_s else 0.0)


def looked(takes_s: list[float], until_s: float) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The lines of a watch that is ended after so many seconds."""
    clock = FakeClock()
    lines: list[dict[str, Any]] = []

    def wait(seconds: float) -> str:
        if clock.now_ns + seconds * 1e9 >= until_s * 1e9:
            return "end"
        clock.sleep(seconds)
        return ""

    device: Any = Slow(clock, takes_s)
    end = watch([device], wait, lambda line: lines.append(dict(line)), clock, INTERVAL_NS)
    assert lines[0] == {"origin_ns": 0, "interval_ns": INTERVAL_NS}
    return [line for line in lines if "tick" in line], end


def test_looks_keep_to_the_schedule_however_long_each_takes() -> None:
    lines, end = looked([0.1, 0.4, 0.2, 0.0], until_s=2.4)
    assert [line["at_ns"] / 1e9 for line in lines] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert end == {"end": "asked to", "longest_look_ns": 400_000_000}


def test_a_look_that_takes_longer_than_the_interval_loses_those_it_covers() -> None:
    lines, _ = looked([0.0, 1.7], until_s=3.4)
    assert [line["tick"] for line in lines] == [0, 1, 4, 5, 6]
    assert [line["at_ns"] / 1e9 for line in lines] == [0.0, 0.5, 2.2, 2.5, 3.0]


@given(st.lists(st.floats(min_value=0, max_value=3)), st.floats(min_value=0.1, max_value=20))
def test_every_sample_is_asked_within_its_own_tick(takes_s: list[float], until_s: float) -> None:
    lines, _ = looked(takes_s, until_s)
    ticks = [line["tick"] for line in lines]
    assert ticks == sorted(set(ticks))
    assert all(line["tick"] == line["at_ns"] // INTERVAL_NS for line in lines)


def test_it_ends_by_itself_after_a_bound_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "MOST_TICKS", 3)
    lines, end = looked([], until_s=100)
    assert (len(lines), end["end"]) == (3, "after 3 looks")


def test_an_order_survives_its_text() -> None:
    order = Order(file="a/ü b", uuids=("GPU-1", "GPU-2"), interval_ns=1, cores=(3, 4))
    assert Order.of(order.text()) == order


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shim:
    return install(monkeypatch, tmp_path)


@dataclass
class Dear(FakeClock):
    """A clock that every look at it costs some nanoseconds: what is between two looks takes as long."""

    cost_ns: int = 0

    def monotonic_ns(self) -> int:
        self.now_ns += self.cost_ns
        return self.now_ns


def device(clock: FakeClock) -> Device:
    with session() as nvml:
        assert isinstance(nvml, Session)
        return Device(nvml, 0, nvml.ask("nvmlDeviceGetHandleByIndex", 0), clock)


def only(lines: Iterator[Mapping[str, Any]]) -> Mapping[str, Any]:
    (line,) = lines
    return line


def test_power_is_asked_only_where_it_is_cheap(shim: Shim) -> None:
    cheap, dear = device(Dear(cost_ns=90_000)), device(Dear(cost_ns=450_000))
    assert only(cheap.look(0))["power_mw"] == 78371
    assert "power_mw" not in only(dear.look(0))
    assert dear.left_out == {"power_mw": "takes 450 us"}


def test_what_a_gpu_does_not_know_is_left_out_with_the_reason(shim: Shim) -> None:
    shim.say("0.Temperature.0 !3")
    found = device(FakeClock())
    sample = only(found.look(7))
    assert "temperature_c" not in sample
    assert (sample["gpu"], sample["tick"], sample["sm_clock_mhz"], sample["event_reasons"]) == (0, 7, 375, 1)
    assert "nvmlDeviceGetTemperature" in found.left_out["temperature_c"]


def test_an_answer_that_fails_for_once_is_only_missing(shim: Shim) -> None:
    found = device(FakeClock())
    shim.say("0.CurrentClocksEventReasons !999")
    assert "event_reasons" not in only(found.look(0))
    shim.say()
    assert only(found.look(1))["event_reasons"] == 1


def test_a_gpu_that_is_lost_gives_what_it_said_and_is_not_asked_again(shim: Shim) -> None:
    found = device(FakeClock())
    shim.say("0.lost_after 1")
    sample, lost = found.look(3)
    assert sample["sm_clock_mhz"] == 375
    assert "15" in lost["lost"]
    assert list(found.look(4)) == []


def test_who_uses_it_is_told_once(shim: Shim) -> None:
    found = device(FakeClock())
    shim.say("0.process 4000 5", "0.process 4001 7")
    told = [line["process"] for line in found.newcomers()]
    assert [(each["pid"], each["memory_bytes"], each["here"]) for each in told] == [(4000, 5, False), (4001, 7, False)]
    shim.say("0.process 4000 5", "0.process 4002 7")
    assert [line["process"]["pid"] for line in found.newcomers()] == [4002]


def test_an_old_driver_is_asked_by_its_old_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shim = install(monkeypatch, tmp_path, "OLD_DRIVER")
    shim.say("0.CurrentClocksThrottleReasons 4")
    assert only(device(FakeClock()).look(0))["event_reasons"] == 4


def test_a_handle_that_is_not_had_is_a_lost_gpu() -> None:
    nothing: Any = None
    found = Device(nothing, 0, Reading(None, evidence="NVML does not list it"), FakeClock())
    assert (found.lost, list(found.look(0))) == ("NVML does not list it", [])
