"""Published numbers stand beside what was measured, and can turn nothing red."""

from __future__ import annotations

import dataclasses
import math
from datetime import date

import pytest

from pytest_llmperf.judge import beside
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.published import Beside, Published
from tests.unit.judge.worlds import ACCEPTANCE, THROUGHPUT, measured

REPORT = Published(metric=THROUGHPUT, value=2870.0, source="a report", expires=date(2027, 6, 1))
TODAY = date(2026, 12, 1)
METRIC = METRICS[THROUGHPUT]


def test_the_change_and_our_own_noise_are_shown() -> None:
    shown = beside(REPORT, METRIC, measured(output_throughput=[[2583.0] * 4]), TODAY)
    assert shown is not None
    assert (shown.measured, shown.runs, shown.expired) == (2583.0, 4, False)
    assert shown.change == pytest.approx(-0.1)
    half = 2.1318467863 * 0.012 * math.sqrt(0.5 + 0.5 / 4)  # t(.05, 4 df)
    assert shown.interval == pytest.approx((0.9 * math.exp(-half) - 1, 0.9 * math.exp(half) - 1))


def test_it_has_no_word_that_could_reach_an_exit_code() -> None:
    assert not {"word", "verdict"} & {field.name for field in dataclasses.fields(Beside)}


def test_a_number_out_of_date_says_so() -> None:
    shown = beside(REPORT, METRIC, measured(output_throughput=[[2870.0]]), date(2027, 6, 1))
    assert shown is not None
    assert shown.expired


def test_absolute_metrics_are_shown_in_their_unit() -> None:
    claim = Published(metric=ACCEPTANCE, value=2.4, source="a paper", expires=date(2027, 6, 1))
    shown = beside(claim, METRICS[ACCEPTANCE], measured(acceptance_length=[[2.1, 2.3]]), TODAY)
    assert shown is not None
    assert shown.change == pytest.approx(-0.2)


def test_without_a_usable_value_there_is_nothing_to_show() -> None:
    assert beside(REPORT, METRIC, Measurement({}), TODAY) is None
    assert beside(REPORT, METRIC, measured(output_throughput=[[math.nan]]), TODAY) is None
    invalid = Measurement(measured(output_throughput=[[1.0]]).samples, {THROUGHPUT: "client too slow"})
    assert beside(REPORT, METRIC, invalid, TODAY) is None


def test_another_metric_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be compared with acceptance_length"):
        beside(REPORT, METRICS[ACCEPTANCE], measured(acceptance_length=[[2.0]]), TODAY)
