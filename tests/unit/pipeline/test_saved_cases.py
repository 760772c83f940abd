"""Which saved runs are the runs of a case, in which order, and why the others are not."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.checks.comparability import ASKED_AS
from pytest_llmperf.history import read_facts
from pytest_llmperf.pipeline.saved_cases import SavedCase, by_case
from tests.unit.history.nights import NOW, save

THROUGHPUT = "output_throughput"


def night(root: Path, days_ago: float, **fields: Any) -> Path:
    return save(root, days_ago, {THROUGHPUT: 100.0 - days_ago}, **fields)


def case_of(*folders: Path) -> SavedCase:
    (case,) = by_case(map(read_facts, folders), now=NOW)
    return case


def test_runs_of_a_clock_that_was_ahead_are_left_out_and_named(tmp_path: Path) -> None:
    past, ahead = night(tmp_path, 1), night(tmp_path, -1, facts={"weights": "dummy"})
    case = case_of(past, ahead)
    assert [each.run.id for each in case.runs] == [past.name]
    assert "yet to come: a clock was wrong" in case.left_out[ahead.name]
    assert case.left_out[ahead.name].startswith("began at 2025-12-01")


def test_the_order_is_that_of_time_whatever_folders_and_zones_are_called(tmp_path: Path) -> None:
    east = (NOW - timedelta(hours=2)).isoformat().replace("+00:00", "-05:00")  # three hours after now, by another clock
    started = [("c", "2025-11-29T02:00:00+02:00", 0), ("d", "2025-11-29T01:00:00+00:00", 0),
               ("a", "2025-11-29T01:00:00+00:00", 1), ("b", "2025-11-29T01:00:00.000+00:00", 1)]  # fmt: skip
    folders = [night(tmp_path, 1, id=name, started=when, order=order) for name, when, order in started]
    late = night(tmp_path, 1, id="e", started=east)
    for seed in range(5):
        shuffled = random.Random(seed).sample([*folders, late], 5)
        case = case_of(*shuffled)
        assert [each.run.id for each in case.runs] == ["c", "d", "a", "b"]
        assert list(case.left_out) == ["e"]


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({ASKED_AS: "endpoint", "engine": "external"}, "asked_as: endpoint, not plain; engine: external, not vllm"),
        ({ASKED_AS: "engines.new.args=--fast"}, "asked_as: engines.new.args=--fast, not plain"),
        ({"engine": "sglang"}, "engine: sglang, not vllm"),
    ],
    ids=str,
)
def test_runs_of_another_subject_than_the_newest_are_left_out_and_named(
    facts: dict[str, str], why: str, tmp_path: Path
) -> None:
    nights = [night(tmp_path, days) for days in (4, 2, 1)]
    other = night(tmp_path, 3, facts=facts)
    case = case_of(*nights, other)
    assert [each.run.id for each in case.runs] == [each.name for each in nights]
    assert case.left_out == {other.name: f"not comparable with the newest run: {why}"}
    newest = night(tmp_path, 0, facts=facts)
    assert [each.run.id for each in case_of(*nights, other, newest).runs] == [other.name, newest.name]


def test_nights_of_other_versions_are_nights(tmp_path: Path) -> None:
    nights = [night(tmp_path, 2), night(tmp_path, 1, facts={"engine_version": "0.27.0", "driver": "590", "args": "-x"})]
    assert len(case_of(*nights).runs) == 2
