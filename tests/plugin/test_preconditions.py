"""A machine or an engine that is not what the suite asks for: INVALID before any load, with what to do about it."""

from __future__ import annotations

from tests.projects import SUITE, Project

CASE = "good/short"


def test_a_required_precondition_that_fails_starts_no_engine(project: Project) -> None:
    wanted = 'preconditions:\n  governor: {require: turtle, reason: "for the test"}\n  strict: true\n'
    project.write(SUITE + wanted)
    outcome = project.run("suites", "-v")
    assert outcome.code == 1, outcome.text
    assert f"{CASE}::preconditions INVALID" in outcome.text
    assert f"{CASE}::throughput INVALID" in outcome.text
    assert "expected turtle (for the test)" in outcome.text
    assert not list(outcome.folder.glob(".llmperf/servers/*"))
    assert not outcome.run_files


def test_what_is_not_in_effect_costs_no_load(project: Project) -> None:
    project.write(SUITE.replace("{engine: scripted}", "{engine: scripted, expect: {gap_s: 5}}"))
    outcome = project.run("suites", "-v")
    assert outcome.code == 1, outcome.text
    assert f"{CASE}::latency INVALID" in outcome.text
    assert "expect.gap_s: asked 5, in effect 0.004 (expected 5)" in outcome.text
    assert not outcome.run_files


def test_what_is_required_and_in_effect_is_shown_with_the_result(project: Project) -> None:
    wanted = "preconditions:\n  env: {OMP_NUM_THREADS: {require: '3'}}\n"
    arm = "{engine: scripted, env: {OMP_NUM_THREADS: '3'}, expect: {gap_s: 0.0040}}"
    project.write(SUITE.replace("{engine: scripted}", arm) + wanted)
    outcome = project.run("suites", "-v", "-m", "throughput or preconditions")
    assert outcome.code == 0, outcome.text
    found = {finding["check"]: finding["status"] for finding in outcome.cases[CASE]["findings"]}
    assert (found["env.OMP_NUM_THREADS"], found["expect.gap_s"]) == ("pass", "pass")
