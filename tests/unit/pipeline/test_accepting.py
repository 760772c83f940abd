"""What goes into a baseline, and into a calibration, of many saved sessions."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.baseline import Store
from pytest_llmperf.history import read_facts
from pytest_llmperf.pipeline.accept import Acceptance, accept
from pytest_llmperf.pipeline.calibrate import calibrate
from pytest_llmperf.pipeline.saved_cases import SavedCase, by_case
from tests.unit.history.nights import NOW, save

THROUGHPUT = "output_throughput"
OLD, NEW = {"engine_version": "0.26.0"}, {"engine_version": "0.27.0"}


def nights(root: Path, *facts: dict[str, str]) -> SavedCase:
    """Sessions of two runs, the last one yesterday."""
    folders = []
    for ago, environment in zip(range(len(facts), 0, -1), facts, strict=True):
        for run in range(2):
            values = {THROUGHPUT: 100.0 + 0.1 * (ago % 3) + 0.01 * run}
            folders.append(save(root, ago - run / 100, values, session=f"night {ago}", facts=environment))
    (case,) = by_case(map(read_facts, folders), now=NOW)
    return case


def accepted(case: SavedCase, root: Path) -> Acceptance:
    return accept(case, Store(root / "b"), why="x", on=date(2025, 12, 1), commit="c", metrics=[THROUGHPUT])


def test_what_differs_between_accepted_sessions_is_told(tmp_path: Path) -> None:
    facts = [{**OLD, "node": "node1"}, {**OLD, "node": "node2"}, {**NEW, "args": "--fast", "driver": "590"}]
    done = accepted(nights(tmp_path, *facts), tmp_path)
    assert done.spread == {
        "engine_version": {"0.26.0": 2, "0.27.0": 1},
        "args": {"none": 2, "--fast": 1},
        "node": {"node1": 2, "node2": 1},
    }
    assert not done.left_out


def test_of_sessions_that_are_alike_nothing_is_told(tmp_path: Path) -> None:
    assert accepted(nights(tmp_path, OLD, OLD, {**OLD, "python": "3.14"}), tmp_path).spread == {}


@pytest.mark.parametrize(
    "other",
    [NEW, {"args": "--fast"}, {"options": "gap_s=1"}, {"env": "A=1"}, {"model_digest": "sha256:b"}, {"model": "n"}],
    ids=str,
)
def test_a_calibration_is_of_the_newest_build(other: dict[str, str], tmp_path: Path) -> None:
    done = calibrate(nights(tmp_path, {**OLD, **other}, OLD, {**OLD, "node": "node2"}, OLD))
    assert (done.calibration.sessions, done.calibration.runs) == (3, 6)
    ((key, value),) = other.items()
    assert len(done.left_out) == 2
    assert all(
        why.startswith(f"another build than the newest run: {key}: {value}, not ") for why in done.left_out.values()
    )


def test_a_driver_is_part_of_the_build_where_it_is_known(tmp_path: Path) -> None:
    drivers: list[dict[str, Any]] = [{"driver": "580"}, {}, {"driver": "590"}, {"driver": "590"}]
    done = calibrate(nights(tmp_path, *drivers))
    assert done.calibration.sessions == 3
    assert set(done.left_out.values()) == {"another build than the newest run: driver: 580, not 590"}
