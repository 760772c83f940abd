"""What can be done with saved runs: compared, accepted as a baseline, and the baseline given another name."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.projects import CONFTEST, Outcome, Project

SUITE = """\
suite: chat
why: Against a stored baseline.
model: {id: fake, weights: dummy}
engines:
  good: {engine: scripted}
  slow: {extends: good, variant_of: good, default: false, gap_s: 0.02}
workloads:
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 16, concurrency: 4}
warmup: {requests: 4}
gates:
  output_throughput: {margin: 60%, cv: 10%}
"""
BASELINE = "baselines/*/chat/good/short.yaml"


def llmperf(project: Project, *args: str) -> Outcome:
    command = [sys.executable, "-m", "pytest_llmperf.cli", *args]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, timeout=60, check=False)
    return Outcome(done.returncode, done.stdout + done.stderr, project.folder)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions of the good arm, one of the slow one and one with a loss made on purpose, each in its folder."""
    folder = tmp_path_factory.mktemp("measured")
    project = Project(folder)

    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    project.write(SUITE)
    accept = "--llmperf-accept=all", "--llmperf-why=x"
    sessions: dict[str, tuple[str, ...]] = {"first": accept, "second": accept}
    sessions |= {"slow": ("--llmperf-engine=slow",), "harmed": ("--llmperf-inject=ttft=+50%",)}
    for name, arguments in sessions.items():
        outcome = project.run("suites", f"--llmperf-save={name}", *arguments)
        assert "ERRORS" not in outcome.text, outcome.text
    return folder


@pytest.fixture
def project(measured: Path, tmp_path: Path) -> Project:
    shutil.copytree(measured, tmp_path / "p")
    return Project(tmp_path / "p")


def stored(project: Project) -> str:
    (path,) = project.folder.glob(BASELINE)
    return path.read_text()


def test_a_slower_arm_is_worse_than_the_good_one(project: Project) -> None:
    worse = llmperf(project, "compare", "first", "slow", "--gate", "output_throughput=60%")
    assert worse.code == 1, worse.text
    assert "arm slow" in worse.text
    assert "REGRESSED" in worse.text
    better = llmperf(project, "compare", "slow", "first", "--gate", "output_throughput=60%")
    assert better.code == 0, better.text
    assert "--llmperf-accept" not in better.text


def test_what_is_judged_by_default(project: Project) -> None:
    outcome = llmperf(project, "compare", "first", "second")
    assert outcome.code in {0, 1}
    judged = [line.split()[0] for line in outcome.text.splitlines() if "   margin " in line]
    assert judged == ["output_throughput", "mean_ttft_ms", "mean_tpot_ms", "mean_e2el_ms"]


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("throughput", "unknown metric"),
        ("output_throughput=0", "write a margin such as output_throughput=5%"),
        ("output_throughput=x", "write a margin such as"),
        ("output_throughput=150%", "write a margin such as"),
        ("acceptance_length=3%", "write a margin such as acceptance_length=0.03"),
    ],
)
def test_a_gate_that_makes_no_sense(project: Project, gate: str, said: str) -> None:
    outcome = llmperf(project, "compare", "first", "second", "--gate", gate)
    assert outcome.code == 2
    assert said in outcome.text


def test_a_loss_made_on_purpose_is_no_run_to_judge(project: Project) -> None:
    outcome = llmperf(project, "compare", "first", "harmed")
    assert outcome.code == 10
    assert "a loss was made on purpose: ttft=+50%" in outcome.text


def test_saved_runs_of_several_sessions_become_the_baseline(project: Project) -> None:
    outcome = llmperf(project, "baseline", "accept", "first", "second", "--why", "two nights")
    assert outcome.code == 0, outcome.text
    text = stored(project)
    assert "two nights" in text
    assert text.count("-good-") == 2, "both sessions"
    assert "+accepted:" in outcome.text
    assert "\n-accepted:" in outcome.text
    assert "2 sessions" in project.run("suites").text


def test_the_newest_sessions_alone(project: Project) -> None:
    llmperf(project, "baseline", "accept", "first", "second", "--why", "x", "--sessions", "1")
    assert stored(project).count("-good-") == 1


def test_a_dry_run_writes_nothing(project: Project) -> None:
    before = stored(project)
    outcome = llmperf(project, "baseline", "accept", "first", "--why", "another reason", "--dry-run")
    assert "another reason" in outcome.text
    assert stored(project) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["slow", "--why", "x"], "only runs of variants"),
        (["harmed", "--why", "x"], "no saved run may become a baseline"),
        (["first", "--why", " "], "needs a reason"),
        (["first", "--why", "x", "--case", "good/long"], "no saved run of it"),
        (["first", "--why", "x", "--metrics", "acceptance_length"], "acceptance_length has no value"),
        (["first", "--why", "x", "--sessions", "0"], "at least one"),
        (["nowhere", "--why", "x"], "no saved run here"),
    ],
)
def test_what_may_not_become_a_baseline(project: Project, arguments: list[str], said: str) -> None:
    before = stored(project)
    outcome = llmperf(project, "baseline", "accept", *arguments)
    assert outcome.code == 2, outcome.text
    assert said in outcome.text
    assert stored(project) == before


def test_without_a_baseline_somebody_says_what_to_keep(project: Project) -> None:
    shutil.rmtree(project.folder / "baselines")
    asked = llmperf(project, "baseline", "accept", "first", "--why", "x")
    assert asked.code == 2
    assert "--metrics" in asked.text
    told = llmperf(project, "baseline", "accept", "first", "--why", "x", "--metrics", "output_throughput")
    assert told.code == 0, told.text
    assert "output_throughput" in stored(project)


def test_a_case_gets_another_name(project: Project) -> None:
    text = stored(project)
    outcome = llmperf(project, "baseline", "mv", "chat", "good/short", "good/brief")
    assert outcome.code == 0, outcome.text
    assert not list(project.folder.glob(BASELINE))
    (moved,) = project.folder.glob("baselines/*/chat/good/brief.yaml")
    assert moved.read_text().splitlines()[-1] == text.splitlines()[-1]
    (project.folder / "suites" / "chat.llmperf.yaml").write_text(SUITE.replace("short:", "brief:"))
    assert "NO BASELINE" not in project.run("suites").text


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("chat", "good/long", "good/x"), "no hardware has a baseline of chat good/long"),
        (("chat", "good/short", "good/short"), "is there already"),
        (("chat", "good/short", "../x"), "a case is ARM/WORKLOAD"),
    ],
)
def test_a_name_that_cannot_be_given(project: Project, names: tuple[str, ...], said: str) -> None:
    outcome = llmperf(project, "baseline", "mv", *names)
    assert outcome.code == 2
    assert said in outcome.text
    assert stored(project)


def test_calibration_tells_noise_and_margins_of_one_build(project: Project) -> None:
    outcome = llmperf(project, "calibrate", "first", "second", "--metrics", "output_throughput,mean_ttft_ms")
    assert outcome.code == 0, outcome.text
    assert "chat good/short on good   6 runs in 2 sessions" in outcome.text
    judged = [line.split()[0] for line in outcome.text.splitlines() if line.endswith(" of 2")]
    assert judged == ["output_throughput", "mean_ttft_ms"]
    plain = llmperf(project, "calibrate", "first", "second", "--metrics", "output_throughput", "--json")
    (calibration,) = json.loads(plain.text).values()
    assert (calibration["sessions"], calibration["runs"], calibration["replays"]) == (2, 6, 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["first"], "all runs are of one session"),
        (["harmed"], "no run that may be judged"),
        (["first", "--metrics", "speed"], "--metrics: unknown metric 'speed'"),
    ],
)
def test_what_cannot_be_calibrated(project: Project, arguments: list[str], said: str) -> None:
    outcome = llmperf(project, "calibrate", *arguments)
    assert outcome.code == 2
    assert said in outcome.text
    assert "--gate" not in outcome.text


def calibrated(project: Project) -> list[str]:
    return [line.split(":")[0].strip() for line in stored(project).splitlines() if "limit: " in line]


def test_a_calibration_is_kept_in_the_baseline_and_shown(project: Project) -> None:
    before = stored(project)
    outcome = llmperf(project, "calibrate", "first", "second", "--store")
    assert outcome.code == 0, outcome.text
    assert "+calibration:" in outcome.text
    assert calibrated(project) == ["output_throughput"]
    kept = stored(project).splitlines()
    assert [line for line in kept if line in before.splitlines()] == before.splitlines(), "nothing else has changed"
    shown = llmperf(project, "baseline", "show")
    assert shown.code == 0, shown.text
    assert ": 6 runs in 2 sessions; " in shown.text
    assert "calibrated: CV " in shown.text
    assert "uncalibrated" not in shown.text


def test_a_calibration_outlives_the_values(project: Project) -> None:
    assert "uncalibrated" in llmperf(project, "baseline", "show").text
    llmperf(project, "calibrate", "first", "second", "--store")
    assert llmperf(project, "baseline", "accept", "first", "--why", "new values").code == 0
    assert "new values" in stored(project)
    assert calibrated(project) == ["output_throughput"]
    assert project.run("suites", "--llmperf-accept=all", "--llmperf-why=newer values").code == 0
    assert "newer values" in stored(project)
    assert calibrated(project) == ["output_throughput"]


def test_a_metric_that_is_kept_no_more_takes_its_calibration_along(project: Project) -> None:
    both, one = ("--metrics", "output_throughput,mean_e2el_ms"), ("--metrics", "mean_e2el_ms")
    llmperf(project, "baseline", "accept", "first", "--why", "x", *both)
    llmperf(project, "calibrate", "first", "second", "--store")
    assert calibrated(project) == ["mean_e2el_ms", "output_throughput"]
    llmperf(project, "baseline", "accept", "first", "--why", "x", *one)
    assert calibrated(project) == ["mean_e2el_ms"]


def test_noise_of_another_load_is_not_kept(project: Project) -> None:
    llmperf(project, "calibrate", "first", "second", "--store")
    (path,) = project.folder.glob(BASELINE)
    path.write_text(stored(project).replace("workload: sha256:", "workload: sha256:0"))
    assert llmperf(project, "baseline", "accept", "first", "--why", "x").code == 0
    assert calibrated(project) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["first", "second", "--metrics", "mean_e2el_ms"], "the baseline has none of these metrics; it has output_thr"),
        (["slow"], "slow is a variant, whose noise need not be that of good"),
        (["first", "second", "--baselines", "elsewhere"], "has no baseline to keep it with (elsewhere/"),
        (["first", "second", "--json"], "not allowed with argument"),
    ],
)
def test_a_calibration_that_cannot_be_kept(project: Project, arguments: list[str], said: str) -> None:
    before = stored(project)
    outcome = llmperf(project, "calibrate", "--store", *arguments)
    assert outcome.code == 2, outcome.text
    assert said in outcome.text
    assert stored(project) == before


def test_a_calibration_of_another_load_is_not_stored(project: Project) -> None:
    (path,) = project.folder.glob(BASELINE)
    path.write_text(stored(project).replace("workload: sha256:", "workload: sha256:0"))
    outcome = llmperf(project, "calibrate", "first", "second", "--store")
    assert outcome.code == 2
    assert "the runs are not comparable with the baseline: workload: " in outcome.text
    assert calibrated(project) == []


def invalid(project: Project, save: str) -> None:
    """As if the client had been late in every run of a session."""
    for path in (project.folder / save / "runs").glob("*/run.json"):
        run = json.loads(path.read_text())
        late = {**run["llmperf"]["findings"][0], "check": "client_schedule", "status": "fail", "policy": "require"}
        run["llmperf"]["findings"].append({**late, "metrics": ["output_throughput"]})
        path.write_text(json.dumps(run))


def test_a_client_that_was_late_is_invalid_for_every_time_that_is_compared(project: Project) -> None:
    invalid(project, "second")
    outcome = llmperf(project, "compare", "first", "second")
    assert outcome.code == 10, outcome.text
    words = [line.split()[-1] for line in outcome.text.splitlines() if "   margin " in line]
    assert words == ["INVALID"] * 4, outcome.text


def test_invalid_sessions_are_left_out_of_a_baseline_and_named(project: Project) -> None:
    invalid(project, "second")
    outcome = llmperf(project, "baseline", "accept", "first", "second", "--why", "x")
    assert outcome.code == 0, outcome.text
    assert outcome.text.count("left out: ") == 3
    assert stored(project).count("-good-") == 1
    assert "output_throughput: " in outcome.text
    assert "against the baseline that it replaces" in outcome.text
