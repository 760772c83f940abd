from __future__ import annotations

from pytest_llmperf.checks.kept import raw_responses
from pytest_llmperf.model.finding import Status


def test_all_or_a_warning_that_says_how_many() -> None:
    assert raw_responses(5, 5, 2**30).status is Status.PASS
    some = raw_responses(4, 5, 2**30)
    assert (some.status, some.policy) == (Status.FAIL, "warn")
    assert str(some).startswith("raw_responses: 4 of 5 kept (expected all, in at most 1024 MiB a run)")
