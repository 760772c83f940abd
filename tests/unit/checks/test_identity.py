"""Speculation must not change what is said."""

from __future__ import annotations

import pytest

from pytest_llmperf.checks.identity import same_output
from pytest_llmperf.model.finding import Status


@pytest.mark.parametrize(
    ("on", "off", "status", "value"),
    [
        (["a b", "c"], ["a b", "c"], Status.PASS, "2 answers are the same"),
        (["a b c", "d"], ["a b x", "d"], Status.FAIL,
         "1 of 2 answers differ; request 0 from character 4 on: 'c' with, 'x' without"),
        (["a", "a b"], ["a", "a"], Status.FAIL,
         "1 of 2 answers differ; request 1 from character 1 on: ' b' with, '' without"),
        (["a", None], ["a", "b"], Status.PASS, "1 answers are the same"),
        ([None], ["a"], Status.UNSUPPORTED, "no request has an answer on both sides"),
        ([], [], Status.UNSUPPORTED, "no request has an answer on both sides"),
    ],
)  # fmt: skip
def test_answers_are_compared_one_by_one(
    on: list[str | None], off: list[str | None], status: Status, value: str
) -> None:
    finding = same_output(on, off)
    assert (finding.status, finding.value) == (status, value)
    assert not finding.invalidates


def test_other_requests_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="2 answers with speculation and 1 without"):
        same_output(["a", "b"], ["a"])
