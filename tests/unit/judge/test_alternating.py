"""An A/B: more turns only while undecided, and the first look that decides a gate is final."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pytest_llmperf.judge import TURNS, alternating, judge, open_turns
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement, Observation
from pytest_llmperf.model.verdict import Word
from tests.unit.judge.worlds import E2EL, THROUGHPUT, gate

PLACES = {side: [i for i, turn in enumerate("ABBA" * 4) if turn == side] for side in "AB"}
GATE: Gate = gate(THROUGHPUT, 0.05, reference="old")


def side(name: str, values: Sequence[float]) -> Measurement:
    places = PLACES[name][: len(values)]
    return Measurement(
        {
            THROUGHPUT: tuple(
                Observation(value, f"{name}{order}", order) for order, value in zip(places, values, strict=True)
            )
        }
    )


def test_what_is_clear_needs_no_more_turns() -> None:
    (verdict,) = alternating(side("A", [100, 101, 100, 101]), side("B", [80, 81, 80, 81]), [GATE])
    assert verdict.word is Word.REGRESSED
    assert not open_turns([verdict])


def test_what_is_not_is_asked_again_and_the_first_decision_stands() -> None:
    noisy, wild = [100, 110, 92, 104], [97, 105, 90, 110]
    (first,) = alternating(side("A", noisy), side("B", wild), [GATE])
    assert first.word is Word.INCONCLUSIVE
    assert open_turns([first])
    clear = side("A", [100, 101, 100, 101, 10, 10, 10, 10]), side("B", [80, 81, 80, 81, 99, 99, 99, 99])
    (kept,) = alternating(*clear, [GATE])
    assert (kept.word, kept.runs) == (Word.REGRESSED, TURNS[0].runs)


def test_a_decision_stands_while_other_gates_need_more_turns() -> None:
    undecided = [100, 110, 92, 104, 100, 110, 92, 104]
    reference = {**side("A", [100, 101, 100, 101, 10, 10, 10, 10]).samples, E2EL: side("A", undecided).of(THROUGHPUT)}
    candidate = {**side("B", [80, 81, 80, 81, 99, 99, 99, 99]).samples, E2EL: side("B", undecided[::-1]).of(THROUGHPUT)}
    gates = [GATE, gate(E2EL, 0.05, reference="old")]
    decided, other = alternating(Measurement(reference), Measurement(candidate), gates)
    assert (decided.word, decided.runs) == (Word.REGRESSED, TURNS[0].runs)
    assert other.runs == TURNS[1].runs


def test_a_look_spends_half_of_the_error() -> None:
    assert sum(look.alpha for look in TURNS) <= 0.05
    assert sum(look.beta for look in TURNS) <= 0.05


def test_false_alarms_and_power_with_a_drift_of_three_per_cent() -> None:
    """Seeded: 1,500 pairs a cell, run sd 1.4 %; Monte-Carlo error at most 0.6 points. 16 runs at the most."""
    rng = np.random.default_rng(11)
    red = {0.0: 0, 0.05: 0}
    drift = np.linspace(0, 0.03, 16)
    for loss in red:
        for _ in range(1500):
            noise = rng.normal(0, 0.014, 16) + drift
            values = {name: list(100 * np.exp(noise[PLACES[name]]) * (1 - loss if name == "B" else 1)) for name in "AB"}
            (verdict,) = alternating(side("A", values["A"]), side("B", values["B"]), [GATE])
            red[loss] += verdict.word is Word.REGRESSED
    assert red[0.0] / 1500 <= 0.05
    assert red[0.05] / 1500 >= 0.95


def test_one_look_of_it_is_the_ordinary_test() -> None:
    sides = side("A", [100, 110, 92, 104]), side("B", [97, 105, 90, 110])
    assert alternating(*sides, [GATE], looks=TURNS[:1]) == judge(*sides, [GATE], look=TURNS[0])


@pytest.mark.parametrize("word", [Word.INVALID, Word.PASSED])
def test_only_what_more_turns_can_decide_is_open(word: Word) -> None:
    (verdict,) = alternating(side("A", [100, 101, 100, 101]), side("B", [100, 101, 100, 101]), [GATE])
    assert verdict.word is Word.PASSED
    (missing,) = alternating(side("A", [100, 101, 100, 101]), Measurement({}), [GATE])
    assert missing.word is Word.INVALID
    assert not open_turns([verdict, missing])
