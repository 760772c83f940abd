from __future__ import annotations

from pathlib import Path

import pytest

from pytest_llmperf.clock import FakeClock
from pytest_llmperf.telemetry import host

CPUINFO = """processor : 0
model name	: AMD EPYC 7B13 64-Core Processor
processor : 1
model name	: AMD EPYC 7B13 64-Core Processor
"""


class Ticking(FakeClock):
    """A clock under which the kernel's counters move while somebody sleeps."""

    proc: Path
    later: str

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        (self.proc / "stat").write_text(self.later)


def ticking(proc: Path, before: str, after: str) -> Ticking:
    (proc / "stat").write_text(before)
    clock = Ticking()
    clock.proc, clock.later = proc, after
    return clock


def test_the_cpu_is_the_hardware_class_where_there_is_no_gpu(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    found = host.read(proc=tmp_path)
    assert found.slug == f"{found.cores}x-amd-epyc-7b13"
    assert found.label == f"{found.cores}x AMD EPYC 7B13"


def test_gpus_are_the_hardware_class_where_there_are_some() -> None:
    assert host.read(("NVIDIA H200",) * 8).slug == "8x-nvidia-h200"


@pytest.mark.parametrize(
    ("after", "share"),
    [
        ("cpu 100 0 50 1060 0 0 0 0 0 0\n", 0.0),
        ("cpu 130 0 50 1030 0 0 0 0 0 0\n", 0.5),
        ("cpu 130 10 70 1000 0 0 0 0 0 0\n", 1.0),
        ("cpu 100 0 50 1000 60 0 0 0 0 0\n", 0.0),
        ("cpu 100 0 50 1000 0 0 0 0 0 0\n", None),
    ],
)
def test_busy_share_is_all_that_was_not_idle(tmp_path: Path, after: str, share: float | None) -> None:
    clock = ticking(tmp_path, "cpu 100 0 50 1000 0 0 0 0 0 0\n", after)
    assert host.busy_share(clock, tmp_path) == (None if share is None else pytest.approx(share))


def test_busy_share_is_unknown_without_the_kernels_word(tmp_path: Path) -> None:
    assert host.busy_share(FakeClock(), tmp_path) is None


def test_the_governor_of_the_cpus_is_told(tmp_path: Path) -> None:
    """aiperf#1424: it doubled TTFT."""
    assert host.governor(tmp_path) == ""
    for number, name in enumerate(["performance", "performance", "powersave"]):
        folder = tmp_path / "devices" / "system" / "cpu" / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{name}\n")
    assert host.governor(tmp_path) == "performance and powersave"
