"""What runs of one build say of the noise, and what can be seen through it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.judge import auto_margin, calibrate, calibrated, judge, ungated
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.calibration import Calibration
from pytest_llmperf.model.measurement import Measurement, Observation
from pytest_llmperf.model.verdict import Word
from tests.unit.judge.worlds import ACCEPTANCE, E2EL, THROUGHPUT, TPOT, gate, measured, noise, runs_around

H200 = Path(__file__).parents[2] / "data" / "calibration" / "vllm-0.26.0_h200.jsonl"
KEYS = {
    "thr": THROUGHPUT, "e2el": E2EL, "tpot": TPOT, "ttft_mean": "mean_ttft_ms", "ttft_p99": "p99_ttft_ms",
}  # fmt: skip


def warm_runs() -> Measurement:
    rows = [json.loads(line) for line in H200.read_text().splitlines()]
    warm = [row for row in rows if row["run"] > 0]
    return Measurement(
        {
            name: tuple(Observation(row["m"][key], f"start {row['start']}", order) for order, row in enumerate(warm))
            for key, name in KEYS.items()
        }
    )


def aa(sessions: int, runs: int, cv: float, rho: float = 0.5, seed: int = 1) -> Measurement:
    rng = np.random.default_rng(seed)
    return measured(
        output_throughput=runs_around(2870, noise(rng, cv, rho, [runs] * sessions)),
        mean_tpot_ms=runs_around(15, noise(rng, 2 * cv, rho, [runs] * sessions)),
    )


def one(runs: Measurement, *names: str) -> Calibration:
    return calibrate(runs, [METRICS[name] for name in names])


@pytest.fixture(scope="module")
def h200() -> Calibration:
    return one(warm_runs(), *KEYS.values())


@pytest.mark.parametrize(
    ("metric", "cv"),
    [(THROUGHPUT, 0.0027), (E2EL, 0.0033), (TPOT, 0.046), ("mean_ttft_ms", 0.10), ("p99_ttft_ms", 0.016)],
)
def test_the_noise_of_an_h200(h200: Calibration, metric: str, cv: float) -> None:
    found = h200.of(metric)
    assert found is not None
    assert found.cv == pytest.approx(cv, rel=0.06)


def test_tpot_and_ttft_trade_off_in_a_closed_loop(h200: Calibration) -> None:
    place = list(KEYS.values())
    row = h200.correlations[place.index(TPOT)]
    assert row[place.index("mean_ttft_ms")] == pytest.approx(-0.99, abs=0.005)
    assert row[place.index(TPOT)] == pytest.approx(1.0)


def test_an_h200_can_gate_throughput_and_not_ttft(h200: Calibration) -> None:
    assert (h200.sessions, h200.runs, h200.replays, h200.red_replays) == (3, 11, 3, 0)
    margins = {each.metric: each.margin for each in h200.noise}
    assert margins[THROUGHPUT] == 0.03  # three sessions: the class prior of 1.2 % still weighs more than they do
    assert margins["mean_ttft_ms"] in {0.15, 0.20}
    share = h200.of(THROUGHPUT)
    assert share is not None
    assert share.session_share_interval is not None
    low, high = share.session_share_interval
    assert low == 0.0  # three sessions tell next to nothing of the session's share
    assert high > 0.9
    assert share.autocorrelation is None


def test_ten_sessions_replace_the_class_prior() -> None:
    few, many = one(aa(9, 2, 0.0027), THROUGHPUT), one(aa(12, 2, 0.0027), THROUGHPUT)
    assert few.noise[0].margin == 0.02
    assert many.noise[0].margin == 0.01


def test_the_smallest_visible_change_is_what_the_judge_says_of_it() -> None:
    runs = aa(12, 2, 0.01)
    asked = calibrated(gate(THROUGHPUT, auto=True), one(runs, THROUGHPUT))
    assert asked is not None
    for count, visible in one(runs, THROUGHPUT).noise[0].visible:
        (verdict,) = judge(runs, measured("c", output_throughput=[[2870.0] * count]), [asked])
        assert verdict.smallest_visible == pytest.approx(visible, rel=1e-12)


def test_a_gate_takes_margin_and_cv_of_its_calibration() -> None:
    calibration = one(aa(12, 2, 0.0027), THROUGHPUT)
    taken = calibrated(gate(THROUGHPUT, auto=True), calibration)
    assert taken is not None
    assert (taken.margin, taken.cv) == (0.01, calibration.noise[0].cv_limit)
    declared = calibrated(gate(THROUGHPUT, cv=0.05), calibration)
    assert declared is not None
    assert declared.cv == 0.05
    fixed = calibrated(gate(THROUGHPUT, 0.07), calibration)
    assert fixed is not None
    assert (fixed.margin, fixed.cv) == (0.07, calibration.noise[0].cv_limit)
    for other in (gate(TPOT), gate(TPOT, auto=True)):
        assert calibrated(other, calibration) == calibrated(other, None) == other


def test_noise_that_hides_even_the_largest_margin_has_none() -> None:
    calibration = one(aa(10, 2, 0.2), THROUGHPUT)
    assert calibration.noise[0].margin is None
    assert calibrated(gate(THROUGHPUT, auto=True), calibration) is None
    (verdict,) = judge(aa(10, 2, 0.2), aa(1, 1, 0.2), [gate(THROUGHPUT)])
    shown = ungated(verdict, gate(THROUGHPUT), calibration.noise[0])
    assert shown.word is Word.INCONCLUSIVE
    assert re.fullmatch(
        r"not gated: 3 runs see no loss below \d\d\.?\d? %, and the largest margin is 20 %", shown.cause
    )


@pytest.mark.parametrize(
    ("visible", "margin"), [(0.0, 0.01), (0.01, 0.01), (0.0101, 0.02), (0.051, 0.075), (0.2, 0.2), (0.21, None)]
)
def test_the_suggested_margin_is_the_smallest_that_can_be_seen(visible: float, margin: float | None) -> None:
    assert auto_margin(visible) == margin


def test_the_session_share_comes_with_its_uncertainty() -> None:
    inside = 0
    for seed in range(60):
        found = one(aa(12, 3, 0.01, rho=0.5, seed=seed), THROUGHPUT).noise[0]
        assert found.session_share_interval is not None
        inside += found.session_share_interval[0] <= 0.5 <= found.session_share_interval[1]
    assert 0.9 - 3 * math.sqrt(0.09 / 60) <= inside / 60


def test_correlated_nights_are_seen() -> None:
    level, nights = 0.0, []
    rng = np.random.default_rng(5)
    for _ in range(80):
        level = 0.8 * level + 0.6 * rng.normal()
        nights.append([0.01 * level])
    found = one(measured(output_throughput=runs_around(100, nights)), THROUGHPUT).noise[0]
    assert found.autocorrelation is not None
    assert found.autocorrelation > 0.5
    assert found.session_share is None  # sessions of one run cannot say


def test_a_session_that_stands_apart_is_a_false_alarm_of_its_replay() -> None:
    quiet = [[0.001 * (-1) ** i] for i in range(11)]
    found = one(measured(mean_tpot_ms=runs_around(100, [*quiet, [0.2]])), TPOT)
    assert (found.replays, found.red_replays, found.noise[0].false_alarms) == (12, 1, 1)


def test_counts_that_never_move_are_calibrated_too() -> None:
    found = one(measured(acceptance_length=[[2.125]] * 12), ACCEPTANCE)
    assert (found.noise[0].cv, found.noise[0].autocorrelation) == (0.0, None)
    taken = calibrated(gate(ACCEPTANCE, auto=True), found)
    assert taken is not None
    assert taken.cv is None  # only a person may declare a count exact


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        (measured(output_throughput=[[1.0, 2.0]]), "all runs are of one session"),
        (measured(mean_tpot_ms=[[1.0], [2.0]]), "output_throughput: no run has a value"),
        (measured(output_throughput=[[1.0], [0.0]]), "must be positive and finite"),
        (measured(output_throughput=[[1.0], [1.0]], mean_tpot_ms=[[1.0], [1.0], [1.0]]), "no value in 1 runs"),
    ],
)
def test_runs_that_cannot_be_calibrated_say_why(runs: Measurement, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        one(runs, THROUGHPUT)


GROUPS = st.lists(st.lists(st.floats(50, 200), min_size=1, max_size=3), min_size=2, max_size=12)


@given(groups=GROUPS, factor=st.sampled_from([0.01, 3.0, 1e4]))
def test_units_do_not_matter(groups: Sequence[Sequence[float]], factor: float) -> None:
    scaled = [[factor * value for value in group] for group in groups]
    here, there = (one(measured(output_throughput=each), THROUGHPUT) for each in (groups, scaled))
    assert there.noise[0].cv == pytest.approx(here.noise[0].cv, rel=1e-6, abs=1e-9)
    assert there.red_replays == here.red_replays


@given(groups=GROUPS)
def test_a_calibration_survives_storage_and_is_the_same_each_time(groups: Sequence[Sequence[float]]) -> None:
    runs = measured(output_throughput=groups, mean_tpot_ms=groups)
    found = one(runs, THROUGHPUT, TPOT)
    assert Calibration.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert repr(found) == repr(one(runs, THROUGHPUT, TPOT))
    for each in found.noise:
        losses = [loss for _, loss in each.visible]
        assert losses == sorted(losses, reverse=True)  # more runs see no less
        if each.session_share_interval is not None:
            assert 0 <= each.session_share_interval[0] <= each.session_share_interval[1] <= 1
