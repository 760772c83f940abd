"""``--llmperf-baselines=git:REF``: a change cannot edit the gate that it has to pass."""

from __future__ import annotations

import re

import pytest

from tests.plugin.git import git
from tests.projects import Project

STORED = """\
suite: chat
why: Against a stored baseline.
model: {id: fake, weights: dummy}
engines: {good: {engine: scripted}}
workloads:
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 16, concurrency: 4}
warmup: {requests: 4}
gates:
  output_throughput: {margin: 60%}
"""


@pytest.fixture
def committed(project: Project) -> Project:
    """A project whose baseline is committed, and edited since."""
    project.write(STORED)
    git(project, "init", "-q", "-b", "main")
    recorded = project.run("suites", "--llmperf-accept=missing", "--llmperf-why=first")
    assert recorded.code == 0, recorded.text
    git(project, "add", "baselines", "suites")
    git(project, "commit", "-q", "-m", "a baseline")
    for file in (project.folder / "baselines").rglob("*.yaml"):
        head, _, _ = file.read_text().partition("metrics:")
        file.write_text(f"{head}metrics:\n  output_throughput: [[1e+9, 1e+9, 1e+9]]\n")
    return project


def test_the_edited_baseline_decides_nothing(committed: Project) -> None:
    assert "REGRESSED" in committed.run("suites").text
    outcome = committed.run("suites", "--llmperf-baselines=git:main")
    assert outcome.code == 0, outcome.text
    assert "throughput PASSED" in outcome.text or "throughput INCONCLUSIVE" in outcome.text


def test_what_lies_about_in_the_work_tree_decides_nothing(committed: Project) -> None:
    for cache in (committed.folder / ".llmperf").glob("baselines*"):
        raise AssertionError(f"{cache} could be edited by the change under test")
    (committed.folder / ".gitattributes").write_text("baselines export-ignore\n")
    git(committed, "add", ".gitattributes")
    git(committed, "commit", "-q", "-m", "attributes")
    outcome = committed.run("suites", "--llmperf-baselines=git:HEAD")
    assert "NO BASELINE" not in outcome.text, outcome.text
    assert not list((committed.folder / "tmp").glob("llmperf-baselines-*")), "nothing is left behind"


def test_a_revision_without_baselines_has_none(committed: Project) -> None:
    git(committed, "rm", "-rq", "--cached", "baselines")
    git(committed, "commit", "-q", "-m", "none")
    outcome = committed.run("suites", "--llmperf-baselines=git:HEAD")
    assert outcome.code == 1
    assert "NO BASELINE" in outcome.text
    assert re.search(r"there is no file baselines/\S+/good/short.yaml at git:HEAD$", outcome.text, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--llmperf-baselines=git:nowhere"], "git:nowhere: no such revision"),
        (["--llmperf-baselines=git:main", "--llmperf-accept=all", "--llmperf-why=x"], "is only read"),
    ],
)
def test_what_cannot_be_obeyed_is_an_error_of_usage(committed: Project, arguments: list[str], said: str) -> None:
    outcome = committed.run("suites", *arguments)
    assert outcome.code == 4
    assert said in outcome.text


def test_outside_a_repository_it_says_so(project: Project) -> None:
    project.write(STORED)
    outcome = project.run("suites", "--llmperf-baselines=git:main", GIT_CEILING_DIRECTORIES=str(project.folder.parent))
    assert outcome.code == 4
    assert "not a git repository" in outcome.text
