"""What is shown while a session runs, on a terminal and without one."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from pytest_llmperf.leases.host import HostLease
from tests.projects import Project


@pytest.mark.parametrize("option", ["--setup-plan", "--setup-only"])
def test_showing_the_setup_measures_nothing(project: Project, option: str) -> None:
    outcome = project.run("suites", option)
    assert outcome.code == 0, outcome.text
    assert not (project.folder / ".llmperf").exists()


def test_without_capture_the_line_on_a_terminal_still_works(project: Project) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        project.command("suites", "-p", "no:capture"),
        cwd=project.folder,
        env=project.environment(),
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        timeout=120,
        check=False,
    )
    os.close(theirs)
    assert "AttributeError" not in done.stdout
    assert "INTERNALERROR" not in done.stdout
    assert b"starting good" in os.read(ours, 65536)
    os.close(ours)


@pytest.mark.parametrize("args", [(), ("-q",), ("-p", "no:capture")])
def test_waiting_for_somebody_elses_measurement_is_said_without_a_terminal(
    project: Project, args: tuple[str, ...]
) -> None:
    (project.folder / "conftest.py").write_text(
        (project.folder / "conftest.py").read_text()
        + "from pytest_llmperf.leases import host\nhost.SAY_AFTER_S = 0.2\n"
    )
    folder = Path(project.environment()["TMPDIR"]) / f"pytest-llmperf-{os.getuid()}"
    folder.mkdir(mode=0o700)
    with HostLease(folder=folder), project.started("suites", *args) as process:
        assert process.stdout is not None
        line = next((line for line in process.stdout if "llmperf: waiting" in line), "")
        assert f"llmperf: waiting for pid {os.getpid()} to end its measurement" in line
