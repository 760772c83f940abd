from __future__ import annotations

import math
from pathlib import Path

import pytest

from pytest_llmperf.engines.queueing import TOTALS, queued_s
from pytest_llmperf.model.counters import Counters
from pytest_llmperf.telemetry.prometheus import parse

PAGES = Path(__file__).parents[2] / "data" / "metrics"


def recorded(name: str) -> Counters:
    return parse((PAGES / f"{name}.txt").read_text())


@pytest.mark.parametrize(
    ("page", "seconds"),
    [("vllm-0.32.0_no_speculation", 0.00047358599), ("sglang-0.5.16_no_speculation", 57.60332119799847)],
)
def test_recorded_pages(page: str, seconds: float) -> None:
    assert queued_s({}, recorded(page)) == pytest.approx(seconds)
    assert queued_s(recorded(page), recorded(page)) == 0


def test_a_server_that_does_not_count_it() -> None:
    assert queued_s({}, recorded("xllamacpp-2026.10_no_speculation")) is None
    assert queued_s(None, None) is None


@pytest.mark.parametrize("name", TOTALS)
def test_engines_and_models_are_added_up(name: str) -> None:
    before = {f'{name}{{engine="0"}}': 1.0, f'{name}{{engine="1"}}': 2.0}
    after = {f'{name}{{engine="0"}}': 1.5, f'{name}{{engine="1"}}': 4.0, f"{name}_created": 1e9}
    assert queued_s(before, after) == 2.5
    assert queued_s(None, {name: 3.0}) == 3.0


@pytest.mark.parametrize("after", [0.5, math.nan, math.inf])
def test_what_cannot_be_is_unknown(after: float) -> None:
    assert queued_s({TOTALS[0]: 1.0}, {TOTALS[0]: after}) is None
