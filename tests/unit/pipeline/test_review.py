"""Figures of saved runs, computed again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_llmperf.load import read_records
from pytest_llmperf.load.records_file import write_records
from pytest_llmperf.model.review import Difference
from pytest_llmperf.pipeline.review import differences, review
from pytest_llmperf.pipeline.saved import read_run
from tests.unit.pipeline import saved_example
from tests.unit.pipeline.test_saved import change


def test_an_untouched_folder_says_what_it_said(tmp_path: Path) -> None:
    told = review(read_run(saved_example.saved(tmp_path)))
    assert told.agrees
    assert told.outcomes == {"ok": 2, "failed": 1, "timed_out": 1}
    assert told.reasons == {"HTTP 500: out of memory": 1, "no end of the answer within 1 s": 1}
    assert told.token_source == {"output": {"usage": 2}, "chunks": {"usage": 2}}


def test_goodput_and_throughput_per_gpu_need_nothing_outside_the_folder(tmp_path: Path) -> None:
    values = review(read_run(saved_example.saved(tmp_path))).values
    assert values["request_goodput"] == 1.0  # two of four within 110 ms, in two seconds
    assert values["slo_attainment"] == 0.5
    assert values["output_throughput_per_gpu"] == values["output_throughput"] / 2
    assert values["acceptance_length"] == 2.5


def test_columns_that_were_changed_are_noticed(tmp_path: Path) -> None:
    folder = saved_example.saved(tmp_path)
    records = read_records(folder / "records.npz")
    later = records.last_token_ns + np.where(records.ok, 1_000_000, 0)
    write_records(replace(records, last_token_ns=later), folder / "records.npz")
    names = {difference.name for difference in review(read_run(folder)).differences}
    assert {"mean_e2el_ms", "mean_tpot_ms"} <= names
    assert not {"mean_ttft_ms", "output_throughput", "completed"} & names


def test_requests_that_are_gone_are_noticed(tmp_path: Path) -> None:
    folder = saved_example.saved(tmp_path)
    change(folder, lambda data: data.update(completed=3))
    assert review(read_run(folder)).differences == (Difference(name="completed", stored=3, now=2),)


def test_a_metric_that_we_no_longer_compute_differs_and_a_new_one_does_not(tmp_path: Path) -> None:
    folder = saved_example.saved(tmp_path)
    change(folder, lambda data: data.update(old_metric=1.5) or data["llmperf"]["metrics"].append("old_metric"))
    change(folder, lambda data: data["llmperf"]["metrics"].remove("mean_concurrency"))
    assert review(read_run(folder)).differences == (Difference(name="old_metric", stored=1.5, now=None),)


def test_what_the_format_before_does_not_say_is_no_difference(tmp_path: Path) -> None:
    folder = saved_example.saved(tmp_path)
    change(folder, lambda data: [data["llmperf"].pop(key) for key in ("format", "version", "slo", "gpus", "metrics")])
    told = review(read_run(folder))
    assert told.agrees
    assert "request_goodput" not in told.values


@pytest.mark.parametrize(
    ("stored", "now", "same"),
    [
        (1.0, 1.0 + 1e-12, True),
        (1.0, 1.0001, False),
        (None, None, True),
        (None, 3, False),
        (0, 0, True),
        (5, None, False),
    ],
)
def test_a_figure_differs_when_it_is_more_than_rounding(stored: float | None, now: float | None, same: bool) -> None:
    assert (differences({"x": stored}, {"x": now}) == []) == same


def test_a_review_is_plain_json(tmp_path: Path) -> None:
    told = review(read_run(saved_example.saved(tmp_path)))
    plain = json.loads(json.dumps(told.to_dict()))
    assert plain["findings"][1]["status"] == "fail"
    assert plain["values"] == dict(told.values)
