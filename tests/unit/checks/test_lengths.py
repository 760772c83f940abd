"""Prompts as long as meant."""

from __future__ import annotations

import pytest

from pytest_llmperf.checks.lengths import input_length
from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.row import Row
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.records import Outcome


def inputs(*counts: tuple[int, int], outcome: Outcome = Outcome.OK) -> Finding:
    return input_length(
        records_of(
            Row(index=i, planned_input_tokens=planned, asked_tokens=1, input_tokens=counted, outcome=outcome)
            for i, (planned, counted) in enumerate(counts)
        )
    )


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ([(64, 64), (64, 64)], Status.PASS),
        ([(64, 65), (64, 65)], Status.PASS),  # a BOS
        ([(1000, 1011)], Status.PASS),
        ([(1000, 1012)], Status.FAIL),
        ([(8192, 8179), (8192, 8185)], Status.PASS),  # 0.16 %
        ([(4000, 4090), (4000, 3965)], Status.FAIL),  # they do not cancel
        ([(-1, 64)], Status.UNSUPPORTED),
        ([(64, -1)], Status.UNSUPPORTED),
    ],
)
def test_both_counts_of_the_input_are_compared(counts: list[tuple[int, int]], status: Status) -> None:
    finding = inputs(*counts)
    assert finding.status is status
    assert not finding.invalidates


def test_failed_requests_say_nothing_of_it() -> None:
    assert inputs((64, 900), outcome=Outcome.FAILED).status is Status.UNSUPPORTED


@pytest.mark.parametrize("seen", [0, 1, 62])
def test_prompts_that_were_cut_forbid_to_judge(seen: int) -> None:
    finding = inputs((64, 64), (64, seen))
    assert (finding.invalidates, finding.metrics) == (True, None)
    assert f"1 of 2 were cut, the first to {seen} of 64" in finding.value


@pytest.mark.parametrize("seen", [63, 64, 65, 200])
def test_prompts_that_another_tokenizer_made_longer_are_only_shown(seen: int) -> None:
    assert not inputs((64, 64), (64, seen)).invalidates
