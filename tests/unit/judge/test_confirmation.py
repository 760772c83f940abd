"""A red is confirmed by a fresh start, or says that it was not."""

from __future__ import annotations

import pytest

from pytest_llmperf.judge import confirm, judge, unconfirmed, undecided
from pytest_llmperf.model.verdict import Verdict, Word
from tests.unit.judge.worlds import THROUGHPUT, gate, measured, runs_around

GATE = gate(THROUGHPUT, 0.05)
QUIET = [[-0.004], [0.003], [0.0], [0.006], [-0.005], [0.002], [-0.001], [0.004], [-0.003], [-0.002]]


def verdict_of(value: float) -> Verdict:
    there, here = measured(output_throughput=runs_around(100, QUIET)), measured("c", output_throughput=[[value]])
    (verdict,) = judge(there, here, [GATE])
    return verdict


def test_a_fresh_run_that_is_worse_too_confirms() -> None:
    red = verdict_of(90.0)
    after = confirm(red, GATE, 100.0, 94.0)
    assert (after.word, after.cause) == (Word.REGRESSED, "")
    assert after.confirmation == pytest.approx(-0.06)


@pytest.mark.parametrize(("fresh", "word"), [(94.7, Word.REGRESSED), (95.0, Word.INCONCLUSIVE)])
def test_a_fresh_run_must_show_half_of_the_loss(fresh: float, word: Word) -> None:
    assert confirm(verdict_of(90.0), GATE, 100.0, fresh).word is word


@pytest.mark.parametrize(("fresh", "word"), [(97.3, Word.REGRESSED), (97.6, Word.INCONCLUSIVE)])
def test_a_fresh_run_must_be_worse_than_the_floor_however_small_the_loss(fresh: float, word: Word) -> None:
    red = verdict_of(96.0)
    assert red.word is Word.REGRESSED
    assert confirm(red, GATE, 100.0, fresh).word is word


def test_a_fresh_run_within_the_floor_does_not() -> None:
    after = confirm(verdict_of(90.0), GATE, 100.0, 98.0)
    assert after.word is Word.INCONCLUSIVE
    assert after.confirmation == pytest.approx(-0.02)
    assert after.cause == "not confirmed: -10 % before, -2 % after a fresh start"
    assert not undecided([after])


def test_an_engine_that_all_but_stopped_is_confirmed() -> None:
    red = verdict_of(1e-20)
    assert red.change == -1.0
    assert confirm(red, GATE, 100.0, 1e-18).word is Word.REGRESSED


def test_only_a_red_can_be_confirmed_or_left_unconfirmed() -> None:
    passed = verdict_of(100.0)
    assert confirm(passed, GATE, 100.0, 50.0) == passed
    assert unconfirmed(passed) == passed


def test_a_red_without_a_fresh_start_says_so() -> None:
    after = unconfirmed(verdict_of(90.0), "the budget ended")
    assert (after.word, after.cause, after.confirmation) == (
        Word.REGRESSED, "unconfirmed: the budget ended", None,
    )  # fmt: skip


def test_a_fresh_run_without_a_usable_value_is_not_silently_anything() -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        confirm(verdict_of(90.0), GATE, 100.0, 0.0)
