"""The script that shows a pull-request gate at work, on the real embedded engine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.projects import Project

SCRIPT = Path(__file__).with_name("pull_request_gate.sh")
SUMMARY = re.compile(r"=+ (\d.*) in [\d.]+s.* =+")


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_a_slow_commit_is_red_also_with_its_own_baseline_and_its_revert_is_green(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    done = subprocess.run(
        [SCRIPT, repository],
        env=Project(tmp_path).environment(PYTHON=sys.executable),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    main, slower, hidden, reverted, _ = done.stdout.split("\n== ")[1:]
    assert SUMMARY.findall(main) == ["1 passed, 1 skipped"], main
    assert SUMMARY.findall(slower) == ["1 failed, 1 passed"], slower
    assert "layers=4 speculative_tokens=3 -> layers=24 speculative_tokens=3" in slower
    assert SUMMARY.findall(hidden) == ["1 passed, 1 skipped", "2 passed", "1 failed, 1 passed"], hidden
    assert SUMMARY.findall(reverted) == ["2 passed"], reverted
    assert "throughput PASSED" in reverted
    assert git(repository, "diff", "--stat", "main", "more-layers") == ""
    assert git(repository, "status", "--porcelain") == ""
    assert Project(repository).left_behind() == []
