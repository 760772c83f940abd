from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf import metrics
from pytest_llmperf.metrics.goodput import good_requests
from pytest_llmperf.model.records import NEVER, Outcome, Records
from pytest_llmperf.model.slo import Slo
from tests.unit.metrics.examples import WINDOW, records, request

ONE = records(request([100, 120, 140]))  # ttft 100, tpot 20, e2el 140 ms


@pytest.mark.parametrize(
    ("slo", "good"),
    [
        (Slo(ttft_s=0.1), 1),
        (Slo(ttft_s=0.099), 0),
        (Slo(tpot_s=0.02), 1),
        (Slo(tpot_s=0.0199), 0),
        (Slo(e2el_s=0.14), 1),
        (Slo(e2el_s=0.139), 0),
        (Slo(ttft_s=0.1, tpot_s=0.02, e2el_s=0.14), 1),
        (Slo(ttft_s=0.1, tpot_s=0.02, e2el_s=0.139), 0),
    ],
)
def test_a_limit_is_kept_up_to_itself(slo: Slo, good: int) -> None:
    assert good_requests(ONE, slo) == good


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.TIMED_OUT])
def test_a_request_that_did_not_succeed_is_not_good_and_was_sent_all_the_same(outcome: Outcome) -> None:
    both = records(request([100, 120, 140]), request([100, 120, 140], outcome=outcome))
    values = metrics.compute(both, WINDOW, None, slo=Slo(e2el_s=1.0))
    assert (values["slo_attainment"], values["request_goodput"]) == (0.5, 0.5)


def test_a_single_token_has_no_pace_to_keep() -> None:
    assert good_requests(records(request([100])), Slo(tpot_s=1e-6)) == 1


def test_an_unknown_token_count_makes_it_unknown_where_it_matters() -> None:
    unknown = records(request([100, 120], tokens=NEVER))
    assert good_requests(unknown, Slo(tpot_s=1.0)) is None
    assert good_requests(unknown, Slo(ttft_s=1.0)) == 1
    assert not {"request_goodput", "slo_attainment"} & set(metrics.compute(unknown, WINDOW, None, slo=Slo(tpot_s=1.0)))


def test_none_good_is_zero_and_no_limits_is_nothing() -> None:
    values = metrics.compute(ONE, WINDOW, None, slo=Slo(ttft_s=0.001))
    assert (values["request_goodput"], values["slo_attainment"]) == (0.0, 0.0)
    assert "slo_attainment" not in metrics.compute(ONE, WINDOW, None)


REQUESTS = st.builds(
    request,
    st.lists(st.integers(1, 500), min_size=1, max_size=5).map(sorted),
    outcome=st.sampled_from(Outcome),
)


@given(st.lists(REQUESTS, min_size=1).map(lambda made: records(*made)), st.floats(0.001, 0.6), st.floats(0.001, 0.6))
def test_goodput_never_exceeds_what_succeeded_or_was_sent(sent: Records, ttft_s: float, e2el_s: float) -> None:
    values = metrics.compute(sent, WINDOW, None, slo=Slo(ttft_s=ttft_s, e2el_s=e2el_s))
    assert values["request_goodput"] <= values.get("request_throughput", 0.0) <= len(sent) / 2.0
    assert 0 <= values["slo_attainment"] <= 1


def test_limits_as_text() -> None:
    assert str(Slo(ttft_s=0.5, e2el_s=30.0)) == "ttft 500 ms, e2el 30000 ms"
