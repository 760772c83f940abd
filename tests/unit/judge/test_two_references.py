"""Against the anchor and the recent sessions: red if either fails, passed if both pass, with the error of one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.judge import LOOKS, Look, judge, sequential, undecided
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.verdict import BASELINE, RECENT, Verdict, Word
from tests.unit.judge.worlds import ACCEPTANCE, TPOT, gate, measured, runs_around

QUIET = [[-0.004], [0.003], [0.0], [0.006], [-0.005], [0.002], [-0.001], [0.004], [-0.003], [-0.002]]
MEDIUM = [[4 * y for y in group] for group in QUIET]


def at(centre: float, deviations: list[list[float]] = QUIET) -> Measurement:
    return measured(mean_tpot_ms=runs_around(centre, deviations))


def one(anchor: Measurement, recent: Measurement | None, values: list[float]) -> Verdict:
    (verdict,) = sequential(anchor, measured("c", mean_tpot_ms=[values]), [gate(TPOT)], recent=recent)
    return verdict


@pytest.mark.parametrize(
    ("anchor", "recent", "word", "against"),
    [
        (100, 100, Word.PASSED, BASELINE),
        (90, 100, Word.REGRESSED, BASELINE),
        (100, 90, Word.REGRESSED, RECENT),
        (90, 90, Word.REGRESSED, BASELINE),
        (110, 100, Word.IMPROVED, BASELINE),
        (100, 110, Word.PASSED, BASELINE),
        (110, 90, Word.REGRESSED, RECENT),
    ],
)
def test_red_against_either_is_red(anchor: float, recent: float, word: Word, against: str) -> None:
    verdict = one(at(anchor), at(recent), [100.0])
    assert (verdict.word, verdict.against) == (word, against)


def test_a_slow_sink_that_recent_sessions_forgive_is_red_against_the_anchor() -> None:
    verdict = one(at(100), at(106), [107.0])
    assert (verdict.word, verdict.against) == (Word.REGRESSED, BASELINE)
    assert verdict.reference == pytest.approx(100, rel=0.01)


def test_passed_needs_both_and_more_runs_are_asked_for_until_then() -> None:
    verdict = one(at(100), at(100, [[9 * y for y in group] for group in QUIET]), [100.0])
    assert (verdict.word, verdict.against) == (Word.INCONCLUSIVE, RECENT)
    assert undecided([verdict])


def test_each_reference_has_half_of_the_error() -> None:
    there, here = at(100, MEDIUM), measured("c", mean_tpot_ms=[[104.6]])
    (alone,) = judge(there, here, [gate(TPOT)])
    assert alone.p_fail is not None
    assert LOOKS[0].alpha / 2 < alone.p_fail < LOOKS[0].alpha
    assert one(there, None, [104.6]).word is Word.REGRESSED
    assert one(there, at(104.6), [104.6]).word is Word.INCONCLUSIVE


def test_recent_sessions_without_the_metric_say_nothing() -> None:
    assert one(at(100), Measurement({}), [100.0]).word is Word.PASSED
    assert one(Measurement({}), at(100), [100.0]).word is Word.NO_BASELINE


def test_exact_counts_are_compared_with_the_anchor_alone() -> None:
    counts = [measured(acceptance_length=[[value]]) for value in (2.0, 2.2, 2.0)]
    (verdict,) = sequential(counts[0], counts[2], [gate(ACCEPTANCE, cv=0)], recent=counts[1])
    assert (verdict.word, verdict.against) == (Word.PASSED, BASELINE)


@given(values=st.lists(st.floats(90, 115), min_size=1, max_size=5))
def test_the_same_sessions_twice_are_the_anchor_at_half_the_error(values: list[float]) -> None:
    looks = [Look(each.runs, each.alpha / 2, each.beta) for each in LOOKS]
    (once,) = sequential(at(100, MEDIUM), measured("c", mean_tpot_ms=[values]), [gate(TPOT)], looks=looks)
    assert one(at(100, MEDIUM), at(100, MEDIUM), values) == once
