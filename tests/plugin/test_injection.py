"""Losses made on purpose, from the command line."""

from __future__ import annotations

import pytest

from tests.projects import Project

CASE = "suites/chat.llmperf.yaml::good/short"


def test_a_loss_turns_the_gate_red_and_is_named_everywhere(project: Project) -> None:
    project.write()
    outcome = project.run("suites", "--llmperf-inject=throughput=-90%")
    assert outcome.code == 1, outcome.text
    assert "output_throughput" in outcome.text
    assert "REGRESSED" in outcome.text
    assert "injected throughput=-90%" in outcome.text
    assert "injected none -> throughput=-90%" in outcome.text
    assert "again: pytest" in outcome.text
    assert "--llmperf-inject=throughput=-90%" in outcome.text
    by_role = {
        role: [
            run["llmperf"]["environment"].get("injected") for run in outcome.run_files if run["llmperf"]["role"] == role
        ]
        for role in ("candidate", "reference", "warmup", "confirmation")
    }
    assert by_role["candidate"] == ["throughput=-90%"] * 4
    assert by_role["reference"] == [None] * 4
    assert set(by_role["warmup"]) == {None}, "what is watched has no loss yet"
    assert by_role["confirmation"] == [None, "throughput=-90%"]
    assert project.left_behind() == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [("drop", "closed mid-stream"), ("error", "injected by llmperf"), ("stall", "no byte on any stream")],
)
def test_a_fault_fails_the_case_once(project: Project, fault: str, said: str) -> None:
    project.write()
    outcome = project.run("suites", "-v", f"--llmperf-inject={fault}")
    assert outcome.code == 1, outcome.text
    assert said in outcome.text
    words = [line.split()[1] for line in outcome.text.splitlines() if line.startswith(f"{CASE}::")]
    assert sorted(words) == ["FAILED", "PASSED", "SKIPPED"], outcome.text
    assert project.left_behind() == []


def test_a_loss_cannot_become_a_baseline(project: Project) -> None:
    project.write()
    outcome = project.run("suites", "--llmperf-inject=ttft=+20%", "--llmperf-accept=all", "--llmperf-why=x")
    assert outcome.code == 4
    assert "a loss made on purpose cannot become a baseline" in outcome.text


def test_an_engine_that_cannot_lose_acceptance_says_so(project: Project) -> None:
    project.write()
    outcome = project.run("suites", "--llmperf-inject=acceptance=-0.1")
    assert outcome.code == 4
    assert "Traceback" not in outcome.text
    assert "the engine scripted cannot lose it on purpose" in outcome.text


def test_what_is_no_loss_is_an_error_of_usage(project: Project) -> None:
    project.write()
    outcome = project.run("suites", "--llmperf-inject=ttft=-20%")
    assert outcome.code == 4
    assert "only losses are injected" in outcome.text
