"""``llmperf report`` as a user runs it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.commands import llmperf
from tests.unit.pipeline import saved_example
from tests.unit.pipeline.test_saved import change


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A ``.llmperf`` with two runs."""
    saved_example.saved(tmp_path / ".llmperf", "one")
    saved_example.saved(tmp_path / ".llmperf", "two")
    return tmp_path / ".llmperf"


def test_the_runs_of_a_session_are_summed_up(root: Path) -> None:
    done = llmperf("report", cwd=root.parent)
    assert done.returncode == 0, done.stderr
    assert "suite: new/chat, arm new, candidate: 2 runs of 1 server" in done.stdout
    assert "output_throughput    4.000   tok/s      0.0%   4.000   4.000   2" in done.stdout


def test_a_run_that_is_named_is_shown_in_full(root: Path) -> None:
    done = llmperf("report", ".llmperf/runs/one", cwd=root.parent)
    assert done.returncode == 0, done.stderr
    assert "2 of 4 ok, 1 failed, 1 timed out" in done.stdout
    assert "1 x HTTP 500: out of memory" in done.stdout


def test_a_difference_is_another_exit_status(root: Path) -> None:
    change(root / "runs" / "one", lambda data: data.update(mean_ttft_ms=1.25))
    done = llmperf("report", ".llmperf/runs/one", cwd=root.parent)
    assert done.returncode == 10
    assert "differs: mean_ttft_ms: stored 1.25, by the columns 100.0" in done.stdout


def test_one_damaged_folder_hides_no_other(root: Path) -> None:
    os.truncate(root / "runs" / "one" / "records.npz", 500)
    done = llmperf("report", "--json", cwd=root.parent)
    assert done.returncode == 2
    assert ".llmperf/runs/one/records.npz: damaged" in done.stderr
    document = json.loads(done.stdout)
    assert [run["id"] for run in document["runs"]] == ["two"]
    assert list(document["unreadable"]) == [".llmperf/runs/one"]


def test_nothing_is_written(root: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    for path in before:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert llmperf("report", cwd=root.parent).returncode == 0
        assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
    finally:
        for path in before:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_no_runs_is_a_usage_error(tmp_path: Path) -> None:
    done = llmperf("report", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == ".llmperf: no saved run here; name a folder of .llmperf/runs, or a .llmperf\n"
