"""Counts that repeat exactly: one baseline session decides, without a p."""

from __future__ import annotations

import pytest

from pytest_llmperf.judge import judge, undecided
from pytest_llmperf.model.verdict import Verdict, Word
from tests.unit.judge.worlds import ACCEPTANCE, E2EL, gate, measured, runs_around

GATE = gate(ACCEPTANCE, 0.03, cv=0)


def one(candidate: list[float], baseline: tuple[float, ...] = (2.125,)) -> Verdict:
    there, here = measured(acceptance_length=[baseline]), measured("c", acceptance_length=[candidate])
    (verdict,) = judge(there, here, [GATE])
    return verdict


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([2.125], Word.PASSED),
        ([2.1225], Word.PASSED),
        ([2.1215], Word.REGRESSED),
        ([2.1285], Word.IMPROVED),
        ([2.125, 2.2, 2.12], Word.REGRESSED),
        ([2.125, 2.2], Word.PASSED),
        ([2.2, 2.3], Word.IMPROVED),
    ],
)
def test_any_loss_beyond_the_floor_decides(values: list[float], word: Word) -> None:
    verdict = one(values)
    assert verdict.word is word
    assert (verdict.p_fail, verdict.p_pass) == (None, None)
    assert verdict.smallest_visible == pytest.approx(0.003)
    assert verdict.change == pytest.approx(sum(values) / len(values) - 2.125)
    assert verdict.interval == (verdict.change, verdict.change)


def test_a_baseline_that_does_not_repeat_itself_was_never_exact() -> None:
    verdict = one([2.125], (2.125, 2.13))
    assert verdict.word is Word.INCONCLUSIVE
    assert "the reference's own runs differ by 0.005, floor 0.003" in verdict.cause
    assert not undecided([verdict])


def test_an_exact_count_is_no_member_of_the_family() -> None:
    deviations = [[0.01 * i] for i in range(-2, 3)]
    there = measured(mean_e2el_ms=runs_around(10, deviations))
    here = measured("c", mean_e2el_ms=[[10.2]], acceptance_length=[[2.0]])
    (alone,) = judge(there, here, [gate(E2EL)])
    assert judge(there, here, [GATE, gate(E2EL)])[1] == alone


def test_an_exact_count_against_an_arm_needs_no_more_runs_either() -> None:
    exact = gate(ACCEPTANCE, 0.03, reference="healthy", cv=0)
    (verdict,) = judge(measured(acceptance_length=[[2.1]]), measured("c", acceptance_length=[[2.0]]), [exact])
    assert (verdict.word, verdict.against) == (Word.REGRESSED, "healthy")
