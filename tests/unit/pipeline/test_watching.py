"""Which GPUs a run is watched on, and what is told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.clock import CLOCK
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gpu import NamedGpu
from pytest_llmperf.model.suite import Arm, Hardware
from pytest_llmperf.model.telemetry import Sample
from pytest_llmperf.pipeline import watching
from pytest_llmperf.pipeline.servers import Server
from pytest_llmperf.pipeline.watching import Told, Watching, gpus_of, visible, wanted_here
from pytest_llmperf.telemetry import nvml, telemetry_file
from pytest_llmperf.telemetry.assembly import Look, assemble
from pytest_llmperf.telemetry.samples_file import Sampled, Seen
from tests.machines import h200
from tests.unit.pipeline import fakes

GPUS = tuple(NamedGpu(index, f"GPU-{index}a", "NVIDIA H200" if index < 3 else "NVIDIA L4") for index in range(4))

UUID = h200().gpus[0].uuid


def seen(text: str | None) -> list[int]:
    environment = {} if text is None else {"CUDA_VISIBLE_DEVICES": text}
    return [gpu.index for gpu in visible(GPUS, environment)]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (None, [0, 1, 2, 3]),
        ("", []),
        ("2,0", [2, 0]),
        (" 1 , 3", [1, 3]),
        ("GPU-2", [2]),
        ("GPU-2a,GPU-0a", [2, 0]),
        ("GPU-", []),
        ("0,-1,2", [0]),
        ("0,9,2", [0]),
        ("MIG-1", []),
        ("NoDevFiles", []),
    ],
)
def test_what_cuda_lets_an_engine_see(text: str | None, left: list[int]) -> None:
    assert seen(text) == left


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    assert set(seen(text)) <= {0, 1, 2, 3}


def server(arm: Arm, *, ours: bool = True) -> Server:
    process = SimpleNamespace(pid=1) if ours else None
    return cast("Server", SimpleNamespace(arm=arm, process=process, client_cores=()))


def asking(
    tmp_path: Path, hardware: Hardware, url: str = "http://127.0.0.1:1", env: Mapping[str, str] | None = None
) -> Case:
    plain = fakes.case(tmp_path)
    arm = replace(plain.arm, options={"url": url}, env=env or {})
    return replace(plain, arm=arm, suite=replace(plain.suite, hardware=hardware))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "find", lambda: GPUS)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("machine")
def test_those_that_the_suite_asks_for_of_those_that_the_engine_may_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watched(hardware: Hardware, *, ours: bool = True, **how: Any) -> tuple[str, ...]:
        case = asking(tmp_path, hardware, **how)
        running = server(case.arm, ours=ours)
        return gpus_of(case, running) if wanted_here(case, running) else ()

    two = Hardware(gpu="h200", count=2)
    assert watched(two) == ("GPU-0a", "GPU-1a")
    assert watched(Hardware(gpu="L4", count=1)) == ("GPU-3a",)
    assert watched(two, env={"CUDA_VISIBLE_DEVICES": "2,1"}) == ("GPU-2a", "GPU-1a")
    assert watched(two, env={"CUDA_VISIBLE_DEVICES": "2,1"}, ours=False) == ("GPU-0a", "GPU-1a")
    assert watched(Hardware()) == ()
    assert watched(two, url="http://far.example:1") == ()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert watched(two) == ("GPU-1a",)


@pytest.mark.parametrize("why", ["any hardware", "warmup", "twin", "off"])
def test_where_nothing_is_watched_nothing_is_started_or_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr(nvml, "find", lambda: GPUS)
    monkeypatch.setattr(watching, "Watch", None)
    case = asking(tmp_path, Hardware() if why == "any hardware" else Hardware(gpu="H200", count=1))
    if why == "off":
        case = replace(case, suite=replace(case.suite, telemetry_interval_s=None))
    role: Any = why if why in watching.UNWATCHED else "candidate"
    with Watching(case, role, server(case.arm), tmp_path / "run", CLOCK) as nothing, nothing.window():
        pass
    assert nothing.told((0, 1)) == Told()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("present", "value", "invalid"),
    [(GPUS[:1], "NVML lists 1 of 2 GPUs", True), (GPUS, "0 of 2 GPUs are seen", False)],
)
def test_gpus_that_are_lost_or_hidden_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: Sequence[NamedGpu], value: str, *, invalid: bool
) -> None:
    monkeypatch.setattr(nvml, "find", lambda: present)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    case = asking(tmp_path, Hardware(gpu="H200", count=2))
    with Watching(case, "candidate", server(case.arm), tmp_path / "run", CLOCK) as run, run.window():
        pass
    (finding,) = run.told((0, 1)).findings
    assert (finding.check, finding.value) == ("telemetry_gpus", value)
    assert (finding.invalidates, finding.unverified) == (invalid, not invalid)


def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: Sampled, fault: str = "") -> Mapping[str, Finding]:
    """The findings of a run of ten seconds of which this was seen."""
    look = Look(at_ns=0, snapshot=h200())
    fake = SimpleNamespace(
        telemetry=lambda window_ns: assemble(
            seen, window_ns=window_ns, interval_ns=500_000_000, before=look, after=look
        ),
        seen=lambda: seen,
        fault=fault,
    )
    case = asking(tmp_path, Hardware(gpu="H200", count=1))
    run = Watching(case, "candidate", server(case.arm, ours=False), tmp_path, CLOCK)
    monkeypatch.setattr(run, "_watch", fake)
    told = run.told((0, 10_000_000_000))
    assert telemetry_file.read(tmp_path) is not None
    assert told.temperatures_c == {UUID: 32}
    return {finding.check: finding for finding in told.findings}


def sampled(ticks: Sequence[int], end: str = "asked to", **seen: Any) -> Sampled:
    samples = [Sample(tick=tick, at_ns=tick, sm_clock_mhz=1980, event_reasons=0) for tick in ticks]
    return Sampled(gpus={UUID: Seen(samples=samples, **seen)}, origin_ns=0, end=end)


def test_telemetry_without_gaps_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = watched(tmp_path, monkeypatch, sampled(range(20)))
    assert {finding.status for finding in found.values()} <= {Status.PASS, Status.NOT_APPLICABLE}


@pytest.mark.parametrize(
    ("seen", "fault", "words"),
    [
        (sampled([*range(8), *range(12, 20)]), "", "4 in a row"),
        (sampled(range(5), end=""), "the sampler ended with exit code -9: it said nothing", "exit code -9"),
        (sampled(range(20), end=""), "", "the sampler ended early: it did not say why"),
        (sampled(range(20), end="after 20 looks"), "", "the sampler ended early: after 20 looks"),
    ],
)
def test_gaps_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: Sampled, fault: str, words: str) -> None:
    finding = watched(tmp_path, monkeypatch, seen, fault)["telemetry_sampler"]
    assert (finding.status, finding.policy) == (Status.FAIL, "warn")
    assert finding.value.startswith("telemetry is incomplete: ")
    assert words in finding.value


def test_reports_that_nobody_could_hear_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = watched(tmp_path, monkeypatch, sampled(range(20), unheard="no events"))["during_xid_events"]
    assert (finding.status, finding.value) == (
        Status.UNSUPPORTED,
        f"only the kernel log tells of error reports: {UUID}: no events",
    )
