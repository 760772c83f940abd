from __future__ import annotations

import pytest

from pytest_llmperf.checks.queueing import queueing
from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.model.finding import Status
from pytest_llmperf.model.records import Outcome
from tests.unit.metrics.examples import records, request

BOTH = records(request([400, 900]), request([1600, 1700], sent_ms=1000))  # a second of TTFT in all


@pytest.mark.parametrize(
    ("queued_s", "status", "said"),
    [(0.0, Status.PASS, "0% of TTFT"), (0.5, Status.PASS, "50% of TTFT"), (0.51, Status.FAIL, "51% of TTFT"),
     (7.0, Status.FAIL, "100% of TTFT")],
)  # fmt: skip
def test_the_share_of_ttft_that_was_a_queue_is_said_and_forbids_nothing(
    queued_s: float, status: Status, said: str
) -> None:
    (finding,) = queueing(BOTH, queued_s)
    assert (finding.status, finding.invalidates) == (status, False)
    assert finding.value.startswith(said)


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert queueing(BOTH, None) == []
    assert queueing(records_of([]), 1.0) == []
    assert queueing(records(request([], outcome=Outcome.FAILED)), 1.0) == []
