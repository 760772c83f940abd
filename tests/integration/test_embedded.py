"""The main job on the real embedded engine: the quickstart suite as it is shipped, and engines that break."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf import load
from pytest_llmperf.model.suite import Arm, Model
from pytest_llmperf.pipeline import servers
from tests.projects import Outcome, Project

ROOT = Path(__file__).parents[2]
QUICKSTART = "suites/quickstart/quickstart.llmperf.yaml"
ITEM = f"{QUICKSTART}::healthy/words"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The shipped suite and its baseline in a folder of their own."""
    shutil.copytree(ROOT / "suites" / "quickstart", tmp_path / "suites" / "quickstart")
    shutil.copytree(ROOT / "baselines" / "any", tmp_path / "baselines" / "any")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return Project(tmp_path)


def edit(project: Project, old: str, new: str) -> None:
    path = project.folder / QUICKSTART
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def candidates(project: Project, save: str) -> list[dict[str, Any]]:
    """What the candidate runs of a session say that was saved in a folder of its own."""
    saved = [
        json.loads(path.read_text())["llmperf"] for path in sorted((project.folder / save).glob("runs/*/run.json"))
    ]
    return [run for run in saved if run["role"] == "candidate"]


def texts(outcome: Outcome) -> set[str]:
    """Digests of all texts that were generated in the measured runs."""
    folders = [run["llmperf"]["id"] for run in outcome.run_files if run["llmperf"]["role"] == "candidate"]
    assert folders
    return {
        text
        for folder in folders
        for text in load.read_records(outcome.folder / ".llmperf" / "runs" / folder / "records.npz").text_sha256
    }


def test_acceptance_of_the_healthy_arm_is_exactly_the_shipped_baseline_after_one_run(project: Project) -> None:
    outcome = project.run("suites", "-m", "acceptance", "-v")
    assert outcome.code == 0, outcome.text
    assert f"{ITEM}::acceptance PASSED" in outcome.text
    assert "throughput" not in [line.split("::")[-1].split()[0] for line in outcome.text.splitlines() if ITEM in line]
    measured = [run for run in outcome.run_files if run["llmperf"]["role"] != "warmup"]
    assert len(measured) == 1
    case = outcome.cases["healthy/words"]
    assert [verdict["metric"] for verdict in case["verdicts"]] == ["acceptance_length"]
    assert case["verdicts"][0]["reference"] == case["verdicts"][0]["measured"]
    assert measured[0]["llmperf"]["acceptance"]["per_position"] == [1024, 1024, 992]
    changed = case["changed"].keys() - {"engine_version"}
    assert not changed, "the shipped baseline was recorded with another model; record it again"


def test_a_damaged_mtp_head_changes_acceptance_and_not_one_word(project: Project) -> None:
    healthy = project.run("suites", "-m", "acceptance")
    words = texts(healthy)
    shutil.rmtree(project.folder / ".llmperf")
    damaged = project.run("suites", "-m", "acceptance", "--llmperf-engine", "damaged-mtp", "-v")
    assert damaged.code == 1
    assert f"{ITEM}::acceptance REGRESSED" in damaged.text
    assert "confirmed by a fresh start" in damaged.text
    assert texts(damaged) == words
    assert project.left_behind() == []


def test_a_broken_model_file_fails_with_its_cause(project: Project) -> None:
    broken = project.folder / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(100))
    edit(project, "model: {id: tiny-dsv3-mtp, weights: synthetic}", f"model: {{id: x, path: {broken}}}")
    edit(project, ", model: {mtp_damage: 0.3}", "")
    edit(project, ", model: {layers: 16}", "")
    outcome = project.run("suites", "-v")
    assert outcome.code == 1
    assert "cause: weights" in outcome.text
    assert outcome.text.count(" FAILED ") == 1, outcome.text
    assert "engine log: " in outcome.text
    assert project.left_behind() == []


def test_a_port_that_is_taken_names_who_holds_it(project: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        edit(project, "speculative_tokens: 3}", f"speculative_tokens: 3, port: {taken.getsockname()[1]}}}")
        outcome = project.run("suites", "-m", "acceptance", "-v")
    assert outcome.code == 1
    assert "cause: port" in outcome.text
    assert str(os.getpid()) in outcome.text
    assert project.left_behind() == []


def test_an_engine_killed_in_mid_run_is_a_failure_and_no_verdict(project: Project) -> None:
    with project.started("suites", "-v", "--llmperf-set", "workloads.words.output_tokens=400") as process:
        project.wait_for(".llmperf/runs/*-reference-*/*")
        for engine in [pid for pid, line in project.processes() if "embedded_server" in line]:
            os.kill(engine, signal.SIGKILL)
        outcome = project.outcome(process, timeout=30)
    assert outcome.code == 1
    assert "was ended by SIGKILL" in outcome.text
    assert "REGRESSED" not in outcome.text
    assert outcome.text.count("::throughput FAILED") == 1, outcome.text
    assert project.left_behind() == []


def test_when_pytest_itself_is_killed_its_engines_end_by_themselves(project: Project) -> None:
    with project.started("suites", "--llmperf-set", "workloads.words.output_tokens=2000") as process:
        project.wait_for(".llmperf/runs/*/*")
        assert any("embedded_server" in line for _, line in project.processes())
        process.kill()
        process.communicate(timeout=30)
    assert project.left_behind(wait_s=10) == []


def test_the_same_prompts_sent_again_to_a_warm_cache_are_invalid_and_fresh_ones_are_not(project: Project) -> None:
    """The seed names the prompts of the measured runs, however many warm-ups a session needs."""
    model = Model(id="tiny-dsv3-mtp", weights="synthetic")
    cached = Arm(name="cached", engine="embedded", model=model, options={"prompt_cache": True})
    server = servers.start(cached, project.folder / "servers")
    try:
        with_cache = ["suites", "-m", "throughput", "-v", "--llmperf-endpoint", server.endpoint.url]
        with_cache += ["--llmperf-set", 'gates={"output_throughput": {"margin": "60%", "cv": "20%"}}']
        first = project.run(
            *with_cache,
            "--llmperf-save=first",
            "--llmperf-seed=7",
            "--llmperf-accept=missing",
            "--llmperf-why=first night",
        )
        assert f"{ITEM}::throughput SKIPPED" in first.text, first.text
        again = project.run(*with_cache, "--llmperf-save=again", "--llmperf-seed=7")
        assert f"{ITEM}::throughput INVALID" in again.text, again.text
        assert "of prompt tokens from the cache (expected 0% to 1% of prompt tokens)" in again.text
        fresh = project.run(*with_cache, "--llmperf-save=fresh")
        assert f"{ITEM}::throughput" in fresh.text
        assert "INVALID" not in fresh.text, fresh.text
    finally:
        server.stop()
    recorded, repeated, others = (candidates(project, folder) for folder in ("first", "again", "fresh"))
    assert [run["plan"] for run in repeated][:3] == [run["plan"] for run in recorded][:3]
    assert not {run["plan"] for run in recorded} & {run["plan"] for run in others}
    for runs, warm in ((recorded, False), (repeated[:3], True), (others, False)):
        assert {run["prefix_hits"]["found"] > run["prefix_hits"]["looked_up"] / 2 for run in runs} == {warm}


def test_a_server_of_somebody_else_is_measured_in_place_and_left_alone(project: Project) -> None:
    with project.started("suites", "-m", "acceptance", "--llmperf-set", "workloads.words.requests=4000") as other:
        address = project.wait_for(".llmperf/servers/*/address").read_text()
        measured = Project(project.folder / "elsewhere")
        measured.folder.mkdir()
        shutil.copytree(project.folder / "suites", measured.folder / "suites")
        (measured.folder / "pytest.ini").write_text("[pytest]\n")
        outcome = measured.run(
            "suites", "-m", "throughput", "--llmperf-endpoint", address, "--llmperf-set",
            'gates={"output_throughput": {"margin": "40%"}}', "-v",
        )  # fmt: skip
        assert "::throughput NO BASELINE" in outcome.text, outcome.text
        assert outcome.run_files[-1]["output_throughput"] > 0
        assert outcome.run_files[-1]["llmperf"]["environment"]["engine"] == "external"
        assert other.poll() is None
        assert any("embedded_server" in line for _, line in project.processes())
    assert project.left_behind(wait_s=10) == []


def prove(project: Project, *args: str) -> Outcome:
    command = [sys.executable, "-m", "pytest_llmperf.cli", "prove", *args]
    done = subprocess.run(
        command, cwd=project.folder, env=project.environment(), capture_output=True, text=True, timeout=300, check=False
    )
    return Outcome(done.returncode, done.stdout + done.stderr, project.folder)


def test_gates_that_can_fail_are_told_from_one_that_cannot(project: Project) -> None:
    # A declared noise of half the value hides the loss.
    edit(project, "output_throughput: {reference: healthy, margin: 40%}", "output_throughput: {margin: 40%, cv: 50%}")
    recorded = project.run("suites", "-m", "throughput", "--llmperf-accept=missing", "--llmperf-why=a test")
    assert recorded.code == 0, recorded.text
    outcome = prove(project, "suites/quickstart")
    lines = outcome.text.splitlines()
    assert [line.split()[:3] for line in lines if "healthy/words" in line and not line.startswith(" ")] == [
        ["alive", "healthy/words", "acceptance_length"],
        ["DEAD", "healthy/words", "output_throughput"],
        ["alive", "healthy/words", "mean_e2el_ms"],
    ], outcome.text
    assert lines[-1] == "2 of 3 gates are alive, 1 DEAD"
    assert outcome.code == 1
    assert project.left_behind() == []
