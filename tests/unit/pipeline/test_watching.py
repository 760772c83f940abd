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
from pytest_llmperf.model.gpu import NamedGpu
from pytest_llmperf.model.suite import Arm, Hardware
from pytest_llmperf.pipeline import watching
from pytest_llmperf.pipeline.servers import Server
from pytest_llmperf.pipeline.watching import Told, Watching, gpus_of, visible, wanted_here
from pytest_llmperf.telemetry import nvml
from tests.unit.pipeline import fakes

GPUS = tuple(NamedGpu(index, f"GPU-{index}a", "NVIDIA H200" if index < 3 else "NVIDIA L4") for index in range(4))


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
