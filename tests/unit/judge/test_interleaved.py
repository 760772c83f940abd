"""Against an arm of the same session: least squares with a trend, on the data's own variance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_llmperf.judge import judge, undecided
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.verdict import Word
from tests.unit.judge.worlds import ABBAABBA, E2EL, THROUGHPUT, gate, interleaved, measured

GATE = gate(THROUGHPUT, 0.4, reference="healthy")
FOUR = st.lists(st.floats(50, 200), min_size=4, max_size=4)


def test_the_evidence_is_the_arm_coefficient_of_least_squares() -> None:
    reference, candidate = [102.0, 99.0, 101.0, 97.0], [90.0, 93.0, 88.0, 91.0]
    (verdict,) = judge(*interleaved(THROUGHPUT, reference, candidate), [GATE])

    y = -np.log(np.array([*reference, *candidate]))
    design = np.column_stack([np.ones(8), [0] * 4 + [1] * 4, [*ABBAABBA[0], *ABBAABBA[1]]])
    beta, rss, *_ = np.linalg.lstsq(design, y, rcond=None)
    se = float(np.sqrt(rss[0] / 5 * np.linalg.inv(design.T @ design)[1, 1]))
    assert verdict.change == pytest.approx(np.expm1(-beta[1]))
    assert verdict.p_fail == pytest.approx(stats.t.sf(beta[1] / se, 5))
    assert verdict.p_pass == pytest.approx(stats.t.cdf((beta[1] + np.log(0.6)) / se, 5))
    assert (verdict.against, verdict.runs, verdict.reference_runs) == ("healthy", 4, 4)


@pytest.mark.parametrize(
    ("speed", "word"), [(1.0, Word.PASSED), (0.5, Word.REGRESSED), (0.27, Word.REGRESSED), (2.0, Word.IMPROVED)]
)
def test_a_change_gets_its_word(speed: float, word: Word) -> None:
    reference = [100.0, 104.0, 97.0, 101.0]
    candidate = [speed * value for value in (98.0, 103.0, 99.0, 102.0)]
    (verdict,) = judge(*interleaved(THROUGHPUT, reference, candidate), [GATE])
    assert verdict.word is word


def test_a_drifting_machine_is_not_a_slower_engine() -> None:
    drift = [100 * 0.9**place for place in range(8)]
    there, here = ([drift[place] for place in side] for side in ((0, 1, 2, 3), (4, 5, 6, 7)))
    (verdict,) = judge(*interleaved(THROUGHPUT, there, here, ((0, 1, 2, 3), (4, 5, 6, 7))), [GATE])
    assert verdict.change == pytest.approx(0.0, abs=1e-9)
    assert verdict.word is Word.PASSED


def test_five_runs_are_too_few_and_more_are_not_asked_for() -> None:
    pair = interleaved(THROUGHPUT, [100.0, 101.0, 99.0], [50.0, 51.0], ((0, 3, 4), (1, 2)))
    (verdict,) = judge(*pair, [GATE])
    assert (verdict.word, verdict.cause) == (Word.INCONCLUSIVE, "too few runs: 5 of at least 6")
    assert not undecided([verdict])


def test_noise_beyond_the_margin_is_underpowered() -> None:
    (verdict,) = judge(*interleaved(THROUGHPUT, [100.0, 30.0, 180.0, 60.0], [90.0, 200.0, 40.0, 80.0]), [GATE])
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.cause.startswith("underpowered: smallest visible change")
    assert not undecided([verdict])


def test_every_arm_gate_is_a_test_of_its_own() -> None:
    there, here = interleaved(THROUGHPUT, [100.0, 104.0, 97.0, 101.0], [80.0, 82.0, 79.0, 85.0])
    (alone,) = judge(there, here, [GATE])
    crowd = judge(there, here, [gate(E2EL), GATE, gate(E2EL, reference="healthy")], family=40)
    assert crowd[1] == alone


def test_a_reference_arm_without_a_value_is_invalid_and_not_a_missing_baseline() -> None:
    _, here = interleaved(THROUGHPUT, [100.0] * 4, [100.0] * 4)
    (verdict,) = judge(Measurement({}), here, [GATE])
    assert (verdict.word, verdict.cause) == (Word.INVALID, "reference 'healthy': no run has a value")


def test_runs_without_one_order_in_time_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="one order in time"):
        judge(measured(output_throughput=[[100.0] * 4]), measured("c", output_throughput=[[100.0] * 4]), [GATE])


@given(reference=FOUR, candidate=FOUR)
def test_swapping_the_arms_flips_the_sign(reference: list[float], candidate: list[float]) -> None:
    (forth,) = judge(*interleaved(THROUGHPUT, reference, candidate), [GATE])
    swapped = interleaved(THROUGHPUT, candidate, reference, (ABBAABBA[1], ABBAABBA[0]))
    (back,) = judge(*swapped, [GATE])
    assert forth.change is not None
    assert back.change is not None
    assert (1 + forth.change) * (1 + back.change) == pytest.approx(1, rel=1e-9)
    if (forth.smallest_visible or 0) > 1e-6:  # where the fit is perfect, rounding decides the sign
        assert (forth.p_fail or 0) + (back.p_fail or 0) == pytest.approx(1, abs=1e-6)


def test_runs_that_agree_to_the_last_bit_are_decided() -> None:
    (same,) = judge(*interleaved(THROUGHPUT, [100.0] * 4, [100.0] * 4), [GATE])
    (half,) = judge(*interleaved(THROUGHPUT, [100.0] * 4, [50.0] * 4), [GATE])
    assert (same.word, half.word) == (Word.PASSED, Word.REGRESSED)
