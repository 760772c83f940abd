"""``llmperf baseline accept`` and ``llmperf calibrate`` over sessions that are not all alike."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_llmperf.checks.comparability import ASKED_AS
from tests.cli.commands import llmperf
from tests.unit.history.nights import NOW, save

METRICS = "--metrics", "output_throughput"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights of 0.26.0 and two of 0.27.0; one at an endpoint among them, and one of a clock that was ahead."""
    root = tmp_path_factory.mktemp("nights")
    for ago in range(5, 0, -1):
        facts = {"engine_version": "0.27.0" if ago <= 2 else "0.26.0"}
        save(root / ".llmperf", ago, {"output_throughput": 100.0 + ago % 2}, session=f"night-{ago}", facts=facts)
    other = {"engine": "external", ASKED_AS: "endpoint"}
    save(root / ".llmperf", 1.5, {"output_throughput": 300.0}, session="endpoint", facts=other)
    ahead = (NOW - datetime.now(UTC)).days - 30
    save(root / ".llmperf", ahead, {"output_throughput": 400.0}, session="ahead")
    return root


def test_accept_says_what_it_leaves_out_and_in_what_the_sessions_differ(root: Path) -> None:
    done = llmperf("baseline", "accept", "--why", "x", "--dry-run", *METRICS, cwd=root)
    assert done.returncode == 0, done.stderr
    assert "new/chat: sessions differ in engine_version: 0.26.0 (3), 0.27.0 (2)" in done.stderr.splitlines()
    assert "not comparable with the newest run: asked_as: endpoint, not plain; engine: external, not " in done.stderr
    assert "yet to come: a clock was wrong" in done.stderr
    assert done.stderr.count("left out: ") == 2
    assert "300" not in done.stdout
    assert "400" not in done.stdout


def test_calibrate_is_of_the_newest_build_and_names_the_others(root: Path) -> None:
    done = llmperf("calibrate", *METRICS, cwd=root)
    assert done.returncode == 0, done.stderr
    assert "2 runs in 2 sessions" in done.stdout
    assert done.stderr.count("another build than the newest run: engine_version: 0.26.0, not 0.27.0") == 3
    assert done.stderr.count("left out: ") == 5


def test_history_counts_what_it_leaves_out(root: Path) -> None:
    done = llmperf("history", cwd=root)
    assert done.returncode == 0, done.stderr
    assert "5 sessions" in done.stdout
    assert "left out: 2 runs; llmperf calibrate names them" in done.stderr
