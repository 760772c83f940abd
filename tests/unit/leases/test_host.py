import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_llmperf.errors import BusyError
from pytest_llmperf.leases import host
from pytest_llmperf.leases.host import HostLease

HOLD = """
import sys, time
from pathlib import Path
from pytest_llmperf.leases.host import HostLease
with HostLease(folder=Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lease."""
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_one_at_a_time_and_the_holder_is_named(other: subprocess.Popen[str], tmp_path: Path) -> None:
    shown: list[str] = []
    with (
        pytest.raises(BusyError, match=rf"pid {other.pid} has been measuring on this machine for 0\.1 s"),
        HostLease(show=shown.append, wait_s=0.1, folder=tmp_path),
    ):
        pass
    assert shown == [f"waiting for the measurement of pid {other.pid} to end"]


@dataclass
class Display:
    """Notes what it shows, and what it prints to stay."""

    shown: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def __call__(self, text: str) -> None:
        self.shown.append(text)

    def say(self, line: str) -> None:
        self.said.append(line)


def test_a_long_wait_is_said_in_a_line_that_stays(
    other: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "SAY_AFTER_S", 0.1)
    display = Display()
    with pytest.raises(BusyError, match=r"for 0\.3 s"), HostLease(show=display, wait_s=0.3, folder=tmp_path):
        pass
    assert display.said == [f"llmperf: waiting for pid {other.pid} to end its measurement, for 0.3 s at most"]
    assert len(display.shown) == 1


def test_a_short_wait_is_not(other: subprocess.Popen[str], tmp_path: Path) -> None:
    display = Display()
    with pytest.raises(BusyError), HostLease(show=display, wait_s=0.1, folder=tmp_path):
        pass
    assert display.said == []


def test_the_lease_ends_with_its_process(other: subprocess.Popen[str], tmp_path: Path) -> None:
    os.kill(other.pid, signal.SIGKILL)
    with HostLease(wait_s=10, folder=tmp_path):
        assert (tmp_path / "host.holder").read_text() == f"pid {os.getpid()}"


def test_a_lease_is_given_back(tmp_path: Path) -> None:
    for _ in range(2):
        with HostLease(wait_s=0, folder=tmp_path):
            pass


def test_a_failure_gives_it_back_too(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), HostLease(folder=tmp_path):
        raise ZeroDivisionError
    with HostLease(wait_s=0, folder=tmp_path):
        pass
