"""What people read of saved runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_llmperf.model.review import Difference, Review
from pytest_llmperf.pipeline.review import review
from pytest_llmperf.pipeline.saved import read_run
from pytest_llmperf.reports import saved_runs
from tests.unit.pipeline import saved_example

DIFFERENCES = tuple(Difference(name=name, stored=1.5, now=None) for name in ("a", "b", "c", "d"))


@pytest.fixture
def told(tmp_path: Path) -> Review:
    return review(read_run(saved_example.saved(tmp_path)))


def test_block_of_a_run(told: Review, golden: Callable[[str, str], None]) -> None:
    golden("report_run.txt", "\n".join(saved_runs.render_run(told)) + "\n")


def test_a_difference_is_told_with_both_figures(told: Review) -> None:
    lines = saved_runs.render_run(replace(told, differences=DIFFERENCES))
    assert "  differs: a: stored 1.5, by the columns unknown" in lines


def test_a_run_without_any_value_is_a_block_too(told: Review) -> None:
    lines = saved_runs.render_run(
        replace(told, values={}, findings=(), acceptance=None, slo="", outcomes={"failed": 4}, token_source={})
    )
    assert "  requests   0 of 4 ok, 4 failed" in lines


def test_thousands_of_reasons_are_cut(told: Review) -> None:
    lines = saved_runs.render_run(replace(told, reasons={f"reason {n}": 1 for n in range(1000)}))
    assert "               and 990 other reasons" in lines


def test_runs_of_a_case_are_summed_up(told: Review, golden: Callable[[str, str], None]) -> None:
    runs = [
        told,
        replace(
            told, id="second", values={name: value * 1.1 for name, value in told.values.items()}, findings=(),
            outcomes={"ok": 4}, reasons={}, differences=DIFFERENCES, session="another",
        ),
        replace(told, id="third", role="warmup", values={}, outcomes={"ok": 4}, findings=()),
    ]  # fmt: skip
    golden("report_cases.txt", "\n".join(saved_runs.render_cases(runs)) + "\n")


def test_json_has_everything(told: Review) -> None:
    document = json.loads(saved_runs.render_json([told], {"x": "why"}))
    assert document["schema"] == saved_runs.SCHEMA
    assert document["unreadable"] == {"x": "why"}
    [run] = document["runs"]
    assert run["values"]["output_throughput_per_gpu"] == told.values["output_throughput_per_gpu"]
    assert run["client"]["lag_p99_ms"] == 0.75
