"""Sessions that are ended from outside, and engines that are killed: nothing is left running, no record is lost."""

from __future__ import annotations

import os
import signal

import pytest

from tests.projects import SUITE, Project

SLOW = SUITE.replace("good: {engine: scripted}", "good: {engine: scripted, gap_s: 0.2}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_session_stops_its_engines_and_keeps_its_records(
    project: Project, number: signal.Signals
) -> None:
    project.write(SLOW)
    with project.started("suites") as process:
        folder = project.wait_for(".llmperf/runs/*/*").parent
        process.send_signal(number)
        outcome = project.outcome(process, timeout=30)
    assert outcome.code == 2, outcome.text
    assert project.left_behind() == []
    assert (folder / "records.npz").exists()


def test_an_engine_that_is_killed_fails_the_case_once_with_the_signal(project: Project) -> None:
    project.write(SLOW)
    with project.started("suites", "-v") as process:
        project.wait_for(".llmperf/runs/*/*")
        for engine in [pid for pid, line in project.processes() if "fake_server" in line]:
            os.kill(engine, signal.SIGKILL)
        outcome = project.outcome(process, timeout=30)
    assert outcome.code == 1, outcome.text
    assert "SIGKILL" in outcome.text
    words = [line.split()[1] for line in outcome.text.splitlines() if "::good/short::" in line.split(" ")[0]]
    assert sorted(words) == ["FAILED", "PASSED", "SKIPPED"]
    assert project.wait_for(".llmperf/runs/*/records.npz").exists()
    assert project.left_behind() == []
