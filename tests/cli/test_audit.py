"""``llmperf baseline audit``, run as a user or a CI job runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_llmperf.baseline import Store
from tests.cli.commands import llmperf
from tests.unit.baseline.examples import EXAMPLE

GOLDEN = Path(__file__).parents[1] / "golden" / "audit.txt"
SUITE = """\
suite: chat
why: Baselines that are looked after.
model: {id: m}
engines:
  good: {engine: embedded}
workloads:
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 16, concurrency: 4}
gates:
  output_throughput: {margin: 5%}
  acceptance_length: {margin: 0.03, cv: 0}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A suite without a baseline, and a file that no case has."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "chat.llmperf.yaml").write_text(SUITE)
    store = Store(tmp_path / "baselines")
    store.write(store.path("8x-nvidia-h200", "chat", EXAMPLE.case), EXAMPLE)
    return tmp_path


def test_what_is_wrong_is_listed_with_what_to_do_and_is_no_failure(project: Path) -> None:
    done = llmperf("baseline", "audit", "--hardware", "2x-cpu", cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout == GOLDEN.read_text()


@pytest.mark.parametrize(
    ("fail", "status"), [("--fail", 1), ("--fail=missing,stale", 1), ("--fail=stale", 0), ("--fail=orphan", 1)]
)
def test_a_ci_job_fails_on_the_kinds_that_it_names(project: Path, fail: str, status: int) -> None:
    assert llmperf("baseline", "audit", fail, cwd=project).returncode == status


def test_advice_fails_only_where_it_is_named(project: Path) -> None:
    between_arms = SUITE[: SUITE.index("  output_throughput")] + "  output_throughput: {reference: good, margin: 60%}\n"
    (project / "suites" / "chat.llmperf.yaml").write_text(between_arms)
    told = llmperf("baseline", "audit", "--fail", cwd=project)
    assert (told.returncode, told.stdout.split()[0]) == (0, "orphan"), told.stdout + told.stderr
    assert llmperf("baseline", "audit", "--fail=orphan", cwd=project).returncode == 1


def test_one_document_for_machines(project: Path) -> None:
    done = llmperf("baseline", "audit", "--json", "--hardware", "2x-cpu", cwd=project)
    document = json.loads(done.stdout)
    assert (document["schema"], document["cases"], document["files"]) == (1, 1, 1)
    assert [each["kind"] for each in document["concerns"]] == ["missing", "missing", "orphan"]
    assert document["concerns"][0]["case"] == "good/short"


def test_one_suite_is_looked_at_alone(project: Path) -> None:
    store = Store(project / "baselines")
    store.write(store.path("2x-cpu", "other", EXAMPLE.case), EXAMPLE)
    assert llmperf("baseline", "audit", cwd=project).stdout.count("orphan   ") == 2
    assert llmperf("baseline", "audit", "suites/chat.llmperf.yaml", cwd=project).stdout.count("orphan   ") == 1


def test_a_suite_for_gpus_that_are_not_here_is_looked_at_where_it_has_baselines(project: Path) -> None:
    gpu = SUITE.replace("engines:", "hardware: {gpu: H200, count: 8}\nengines:")
    (project / "suites" / "chat.llmperf.yaml").write_text(gpu)
    assert "no baseline on 8x-nvidia-h200" in llmperf("baseline", "audit", cwd=project).stdout
    for path in (project / "baselines").rglob("*.yaml"):
        path.unlink()
    (project / "baselines" / "8x-nvidia-h200" / "chat" / "vllm").rmdir()
    (project / "baselines" / "8x-nvidia-h200" / "chat").rmdir()
    assert "no baseline on 8x-h200" in llmperf("baseline", "audit", cwd=project).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fail=mising"], "--fail=mising: unknown kind; did you mean 'missing'?"),
        (["--stale-days", "0"], "--stale-days 0: at least one"),
        (["baselines"], "baselines: there is no suite (*.llmperf.yaml) here"),
        (["--runs", "nowhere"], "nowhere: no saved run here"),
    ],
)
def test_what_makes_no_sense(project: Path, arguments: list[str], said: str) -> None:
    done = llmperf("baseline", "audit", *arguments, cwd=project)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_folder_of_runs_without_a_run_is_no_mistake_where_nobody_names_it(project: Path) -> None:
    (project / ".llmperf" / "servers").mkdir(parents=True)
    assert llmperf("baseline", "audit", cwd=project).returncode == 0
    assert llmperf("baseline", "audit", "--runs", ".llmperf", cwd=project).returncode == 2


def test_a_suite_with_mistakes_names_them(project: Path) -> None:
    (project / "suites" / "chat.llmperf.yaml").write_text(SUITE.replace("gates:", "gate:"))
    done = llmperf("baseline", "audit", cwd=project)
    assert done.returncode == 2
    assert "chat.llmperf.yaml:8: gate: unknown field; did you mean 'gates'?" in done.stderr
