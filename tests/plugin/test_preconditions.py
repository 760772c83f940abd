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
    project.write(SUITE.replace("{engine: scripted}", "{engine: scripted, expect: {gap_s: 0.0040}}") + wanted)
    outcome = project.run("suites", "-v", "-m", "throughput or preconditions", OMP_NUM_THREADS="3")
    assert outcome.code == 0, outcome.text
    found = {finding["check"]: finding["status"] for finding in outcome.cases[CASE]["findings"]}
    assert (found["env.OMP_NUM_THREADS"], found["expect.gap_s"]) == ("pass", "pass")
    assert "OMP_NUM_THREADS=3" in outcome.run_files[0]["llmperf"]["environment"]["environment"].split()


def test_what_the_other_side_does_not_run_is_invalid_before_its_load(project: Project) -> None:
    other = "  other: {extends: good, default: false, expect: {gap_s: 5}}\nworkloads:"
    project.write(SUITE.replace("workloads:", other).replace("reference: good", "reference: other"))
    outcome = project.run("suites", "-v", "-m", "throughput")
    assert outcome.code == 1, outcome.text
    assert f"{CASE}::throughput INVALID" in outcome.text
    assert "other: expect.gap_s: asked 5, in effect 0.004" in outcome.text
    assert "other" not in {run["llmperf"]["arm"] for run in outcome.run_files}
