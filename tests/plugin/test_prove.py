"""``llmperf prove`` as a user runs it, on the scripted engine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.plugin.git import git
from tests.projects import CONFTEST, Outcome, Project

SUITE = """\
suite: chat
why: Acceptance against a stored baseline.
model: {id: fake, weights: dummy}
engines: {good: {engine: scripted, accepts: 2.0}}
workloads:
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 16, concurrency: 4}
warmup: {requests: 4}
gates:
  acceptance_length: {margin: 0.1, cv: 0}
failed_requests: {allowed: 1%, limit: 10%}
"""
MAIN = "from pytest_llmperf.cli import main; raise SystemExit(main())"


def prove(project: Project, *args: str) -> Outcome:
    command = [sys.executable, "-c", f"{CONFTEST}{MAIN}", "prove", "suites", *args]
    done = subprocess.run(
        command, cwd=project.folder, env=project.environment(), capture_output=True, text=True, timeout=120, check=False
    )
    return Outcome(done.returncode, done.stdout + done.stderr, project.folder)


@pytest.fixture
def recorded(project: Project) -> Project:
    """A project with a baseline of natural acceptance."""
    project.write(SUITE)
    outcome = project.run("suites", "--llmperf-accept=missing", "--llmperf-why=first")
    assert outcome.code == 0, outcome.text
    assert project.run("suites").code == 0
    return project


def test_acceptance_lost_by_synthetic_counts_is_judged_and_labelled_and_failed_requests_are_seen(
    recorded: Project,
) -> None:
    outcome = prove(recorded)
    assert outcome.code == 0, outcome.text
    proof, failures, summary = outcome.text.splitlines()
    assert proof.startswith("alive     good/short  acceptance_length   acceptance=-0.2   measured -0.20")
    assert proof.endswith(" (synthetic counts, judged as natural ones): REGRESSED")
    assert failures == "alive     good/short  failed_requests   error"
    assert summary == "2 of 2 gates are alive"


def test_synthetic_counts_of_an_ordinary_session_are_still_refused(recorded: Project) -> None:
    outcome = recorded.run("suites", "--llmperf-set=engines.good.synthetic=true")
    assert outcome.code == 1
    assert "acceptance: baseline natural, here synthetic" in outcome.text


def test_the_baselines_of_a_revision_prove_as_well_and_nothing_is_left(recorded: Project) -> None:
    git(recorded, "init", "-q", "-b", "main")
    git(recorded, "add", "baselines", "suites")
    git(recorded, "commit", "-q", "-m", "a baseline")
    for file in (recorded.folder / "baselines").rglob("*.yaml"):
        file.unlink()
    without = prove(recorded)
    assert without.code == 1
    assert without.text.startswith("UNPROVEN  good/short  acceptance_length"), without.text
    outcome = prove(recorded, "--baselines=git:main")
    assert outcome.code == 0, outcome.text
    assert not list((recorded.folder / "tmp").glob("llmperf-baselines-*"))


def test_a_revision_that_there_is_not_is_an_error_of_usage(recorded: Project) -> None:
    git(recorded, "init", "-q", "-b", "main")
    outcome = prove(recorded, "--baselines=git:nowhere")
    assert outcome.code == 2
    assert "git:nowhere: no such revision" in outcome.text


BESIDE = """\
suite: chat
why: A fast arm beside a slow one.
model: {id: fake, weights: dummy}
engines:
  slow: {engine: scripted, gap_s: 0.012}
  fast: {engine: scripted, gap_s: 0.004}
workloads:
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 16, concurrency: 4}
warmup: {requests: 4}
gates:
  mean_e2el_ms: {margin: 60%, only: [slow]}
relations:
  fast: {metric: output_throughput, vs: slow, at_least: 1.5, margin: 30%}
"""


def test_an_arm_that_is_far_ahead_of_the_other_loses_that_first(project: Project) -> None:
    project.write(BESIDE)
    outcome = prove(project, "--engine=fast")
    assert outcome.text.startswith("alive     fast/short  output_throughput   throughput=-"), outcome.text
    assert outcome.code == 0
    assert project.left_behind() == []
