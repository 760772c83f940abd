"""The sampler as a process: it sees what the driver says, ends when it is told, and dies with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_llmperf.telemetry import samples_file, sampling
from pytest_llmperf.telemetry.samples_file import Sampled
from pytest_llmperf.telemetry.sampling import Sampling
from tests.nvml_shim.shim import Shim, install

INTERVAL_NS = 20_000_000
UUIDS = [f"GPU-{index:08x}-0000-0000-0000-000000000000" for index in range(2)]


@pytest.fixture
def shim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shim:
    """For the processes that this one starts."""
    made = install(monkeypatch, tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(made.library.parent))
    made.say(gpus=2)
    return made


def until(met: Callable[[], object], wait_s: float = 20.0) -> None:
    deadline = time.monotonic() + wait_s
    while not met():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


def sample(folder: Path, uuids: list[str], meanwhile: Callable[[], object] = lambda: None) -> tuple[Sampling, Sampled]:
    """Sample until there are three looks, and ``meanwhile`` was done after the second."""
    file = folder / samples_file.NAME

    def looks() -> int:
        return len(samples_file.read(file, uuids).gpus[uuids[0]].samples)

    with Sampling(uuids, INTERVAL_NS, file) as running, running.window():
        until(lambda: looks() >= 2)
        meanwhile()
        seen = looks()
        until(lambda: looks() > seen or samples_file.read(file, uuids).gpus[uuids[0]].lost)
    return running, samples_file.read(file, uuids)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_it_samples_every_gpu_and_leaves_nothing_but_its_file(shim: Shim, tmp_path: Path) -> None:
    shim.say(
        "0.ClockInfo.1 1980", "1.ClockInfo.1 1200", "1.CurrentClocksEventReasons 0x24", "*.field.186 1 690123", gpus=2
    )
    folder = tmp_path / "run"
    folder.mkdir()
    running, seen = sample(folder, UUIDS)
    one, other = seen.gpus.values()
    assert (running.fault, seen.whole, one.lost) == ("", True, "")
    assert [each.tick for each in one.samples[:2]] == [0, 1]
    assert {each.sm_clock_mhz for each in one.samples} == {1980}
    last = other.samples[-1]
    assert (last.sm_clock_mhz, last.memory_clock_mhz, last.temperature_c, last.event_reasons) == (1200, 3201, 32, 0x24)
    assert last.power_mw in {None, 690123}  # asked only where it is cheap
    assert all(a.at_ns < b.at_ns for a, b in zip(one.samples, one.samples[1:], strict=False))
    assert [path.name for path in folder.iterdir()] == [samples_file.NAME]


def test_counters_are_read_before_and_after(shim: Shim, tmp_path: Path) -> None:
    shim.say("*.TotalEnergyConsumption 1000+7000", "*.field.269 3 0+40", gpus=2)
    _, seen = sample(tmp_path, UUIDS)
    one = seen.gpus[UUIDS[0]]
    assert (one.before.energy_mj, one.after.energy_mj) == (1000, 8000)
    assert (one.before.fields[269], one.after.fields[269]) == (0, 40)
    assert 251 not in one.before.fields


def test_a_gpu_that_is_lost_on_the_way_is_told_and_the_other_one_goes_on(shim: Shim, tmp_path: Path) -> None:
    lost = lambda: shim.say("0.lost_after 0", gpus=2)  # noqa: E731
    _, seen = sample(tmp_path, UUIDS, lost)
    one, other = seen.gpus.values()
    assert "15" in one.lost
    assert (other.lost, seen.whole) == ("", True)


def test_a_gpu_that_is_not_there_is_lost_from_the_beginning(shim: Shim, tmp_path: Path) -> None:
    _, seen = sample(tmp_path, [UUIDS[0], "GPU-elsewhere"])
    assert seen.gpus["GPU-elsewhere"].lost == "NVML does not list it"
    assert seen.gpus[UUIDS[0]].samples


def test_error_reports_that_come_within_the_window_are_told(shim: Shim, tmp_path: Path) -> None:
    _, seen = sample(tmp_path, UUIDS, lambda: shim.say("1.xid 79", "1.xid 63", gpus=2))
    assert [each.xids for each in seen.gpus.values()] == [[], [79, 63]]
    assert [each.unheard for each in seen.gpus.values()] == ["", ""]


def test_where_there_are_no_events_the_reason_is_kept(shim: Shim, tmp_path: Path) -> None:
    shim.say("0.RegisterEvents !4", gpus=2)
    _, seen = sample(tmp_path, UUIDS)
    assert [bool(each.unheard) for each in seen.gpus.values()] == [True, False]


def test_it_runs_where_it_was_put(shim: Shim, tmp_path: Path) -> None:
    core = max(os.sched_getaffinity(0))
    with Sampling(UUIDS, INTERVAL_NS, tmp_path / "file", [core]) as running, running.window():
        assert running.pid is not None
        assert os.sched_getaffinity(running.pid) == {core}


def test_a_sampler_that_is_killed_is_a_fault_and_what_it_wrote_is_kept(shim: Shim, tmp_path: Path) -> None:
    file = tmp_path / samples_file.NAME
    with Sampling(UUIDS, INTERVAL_NS, file) as running, running.window():
        until(lambda: samples_file.read(file, UUIDS).gpus[UUIDS[0]].samples)
        assert running.pid is not None
        os.kill(running.pid, signal.SIGKILL)
        until(lambda: gone(running.pid or 0))
    seen = samples_file.read(file, UUIDS)
    assert running.fault == "the sampler ended with exit code -9: it said nothing"
    assert (seen.whole, bool(seen.gpus[UUIDS[0]].samples)) == (False, True)


def test_one_that_hangs_is_waited_for_no_longer_than_the_bounds(
    shim: Shim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "END_TIMEOUT_S", 0.1)
    with Sampling(UUIDS, INTERVAL_NS, tmp_path / "file") as running:
        with running.window():
            assert running.pid is not None
            os.kill(running.pid, signal.SIGSTOP)
        pid = running.pid
    assert running.fault == "the sampler did not end within 0.1 s, and was killed"
    assert gone(pid)


def test_one_that_is_not_ready_in_time_costs_the_measurement_nothing_else(
    shim: Shim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "READY_TIMEOUT_S", 0.0)
    with Sampling(UUIDS, INTERVAL_NS, tmp_path / "file") as running, running.window():
        pass
    assert running.fault == 'the sampler did not say "ready" within 0 s'
    assert not samples_file.read(tmp_path / "file", UUIDS).whole


def test_without_a_driver_it_says_why(shim: Shim, tmp_path: Path) -> None:
    shim.facts.write_text("init !9\n")
    with Sampling(UUIDS, INTERVAL_NS, tmp_path / "file") as running, running.window():
        pass
    assert "nvmlInit: 9" in samples_file.read(tmp_path / "file", UUIDS).end


def test_a_run_that_fails_leaves_no_sampler(shim: Shim, tmp_path: Path) -> None:
    def interrupted() -> None:
        with Sampling(UUIDS, INTERVAL_NS, tmp_path / "file") as running, running.window():
            pids.append(running.pid or 0)
            raise KeyboardInterrupt

    pids: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert gone(pids[0])


def test_when_its_parent_is_killed_it_ends_by_itself(shim: Shim, tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from pytest_llmperf.telemetry.sampling import Sampling\n"
        f"with Sampling({UUIDS!r}, {INTERVAL_NS}, Path({str(tmp_path / 'file')!r})) as running, running.window():\n"
        "    print(running.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not gone(pid)
        parent.kill()
    until(lambda: gone(pid))


def test_it_imports_neither_numpy_nor_pydantic() -> None:
    code = (
        "import sys, pytest_llmperf.telemetry.sampler, pynvml\n"
        "print([name for name in ('numpy', 'pydantic', 'requests', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
