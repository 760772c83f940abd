"""Speculation must not change what is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_llmperf.checks.identity import same_output
from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.row import Row
from pytest_llmperf.model.finding import Status
from pytest_llmperf.model.run import ClientFacts, Run


def run(*texts: str) -> Run:
    rows = [Row(index=i, planned_input_tokens=1, asked_tokens=1, text_sha256=text) for i, text in enumerate(texts)]
    return Run(
        id="r", suite="s", case="c", arm="a", role="twin", session="1", order=0, started="", seed=0, plan_digest="",
        window_ns=(0, 1), records=records_of(rows), client=ClientFacts(
            workers=1, lag_mean_ms=0, lag_p50_ms=0, lag_p99_ms=0, lag_max_ms=0, cpu_share=0, schedule_lag_p99_ms=None,
            max_in_flight=1,
        ), acceptance=None, environment={}, findings=(), folder=Path(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("on", "off", "status", "value"),
    [
        (["aa", "cc"], ["aa", "cc"], Status.PASS, "2 answers are the same"),
        (["aa", "dd", "ee"], ["aa", "xx", "yy"], Status.FAIL, "2 of 3 answers differ, first that of request 1"),
        (["aa", ""], ["aa", "bb"], Status.PASS, "1 answers are the same"),
        ([""], ["aa"], Status.UNSUPPORTED, "no request has an answer on both sides"),
        ([], [], Status.UNSUPPORTED, "no request has an answer on both sides"),
    ],
)
def test_answers_are_compared_one_by_one(on: list[str], off: list[str], status: Status, value: str) -> None:
    finding = same_output(run(*on), run(*off))
    assert (finding.status, finding.value) == (status, value)
    assert not finding.invalidates


def test_other_requests_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="sent other requests"):
        same_output(run("a"), replace(run("a"), seed=1))
