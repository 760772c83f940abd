"""Looks at 1, 3 and 5 runs: what is decided stays decided, and only what is open is measured again."""

from __future__ import annotations

import pytest

from pytest_llmperf.judge import LOOKS, judge, sequential, undecided
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.verdict import Verdict, Word
from tests.unit.judge.worlds import ACCEPTANCE, E2EL, THROUGHPUT, TPOT, gate, interleaved, measured, runs_around

QUIET = [[-0.004], [0.003], [0.0], [0.006], [-0.005], [0.002], [-0.001], [0.004], [-0.003], [-0.002]]
MEDIUM = [[4 * y for y in group] for group in QUIET]
BASELINE = measured(mean_tpot_ms=runs_around(100, QUIET), mean_e2el_ms=runs_around(100, MEDIUM))


def after(tpot: list[float], e2el: list[float]) -> list[Verdict]:
    return sequential(BASELINE, measured("c", mean_tpot_ms=[tpot], mean_e2el_ms=[e2el]), [gate(TPOT), gate(E2EL)])


def test_the_looks_and_what_they_spend() -> None:
    assert [(look.runs, look.alpha, look.beta) for look in LOOKS] == [(1, 0.01, 0.05), (3, 0.02, 0.05), (5, 0.04, 0.05)]


def test_a_decided_gate_keeps_its_word_and_its_runs() -> None:
    passed, red = after([100.0, 130.0, 130.0], [103.0, 106.0, 106.0])
    assert (passed.word, passed.runs, passed.measured) == (Word.PASSED, 1, 100.0)
    assert (red.word, red.runs) == (Word.REGRESSED, 3)


def test_an_open_gate_asks_for_the_next_look_and_runs_between_looks_wait() -> None:
    one, two, three = (after([100.0] * n, [103.0] * n) for n in (1, 2, 3))
    assert undecided(one)
    assert two == one
    assert three[1].runs == 3
    assert undecided(three)


def test_the_last_look_ends_it() -> None:
    beyond = after([100.0] * 9, [102.8] * 9)
    assert (beyond[1].word, beyond[1].runs) == (Word.INCONCLUSIVE, 5)


def test_nothing_more_is_asked_for_when_all_is_decided() -> None:
    assert not undecided(after([100.0], [120.0]))


def test_the_first_look_is_an_ordinary_judgement() -> None:
    candidate = measured("c", mean_tpot_ms=[[100.0]], mean_e2el_ms=[[103.0]])
    gates = [gate(TPOT), gate(E2EL)]
    assert sequential(BASELINE, candidate, gates, family=3) == judge(
        BASELINE, candidate, gates, look=LOOKS[0], family=3
    )


@pytest.mark.parametrize("values", [[2.0], [2.0, 2.0, 1.8]])
def test_gates_without_looks_are_judged_on_all_runs(values: list[float]) -> None:
    there, here = interleaved(THROUGHPUT, [100.0] * 4, [101.0, 99.0, 100.0, 100.0])
    counts = measured("c", acceptance_length=[[2.0, 2.0, 2.0, values[-1]]])
    renumbered = tuple(type(o)(o.value, "b", p) for o, p in zip(counts.samples[ACCEPTANCE], (1, 2, 5, 6), strict=True))
    here = Measurement({**here.samples, ACCEPTANCE: renumbered})
    there = Measurement({**there.samples, ACCEPTANCE: measured(acceptance_length=[[2.0]]).samples[ACCEPTANCE]})
    gates = [gate(ACCEPTANCE, cv=0), gate(THROUGHPUT, 0.4, reference="healthy")]
    exact, arm = sequential(there, here, gates)
    assert exact.word is (Word.PASSED if values[-1] == 2.0 else Word.REGRESSED)
    assert (arm.word, arm.runs, arm.reference_runs) == (Word.PASSED, 4, 4)
