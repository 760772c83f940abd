"""Does speculative decoding pay?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_llmperf.judge.break_even import BreakEven, break_even
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.verdict import Word
from tests.unit.judge.worlds import ACCEPTANCE, THROUGHPUT, TPOT, gate, interleaved


def account(metric: str, factor: float, length: float, at_least: float | None = None) -> BreakEven:
    """Speculation changes a metric by a factor at some acceptance length."""
    without = [10.0, 10.1, 9.9, 10.05]
    off, on = interleaved(metric, without, [factor * value for value in (10.04, 9.95, 10.08, 9.96)])
    lengths = tuple(replace(run, value=length) for run in on.samples[metric])
    on = Measurement({**on.samples, ACCEPTANCE: lengths})
    return break_even(on, off, replace(gate(metric, 0.05, reference="off"), at_least=at_least))


@pytest.mark.parametrize(("metric", "turn"), [(TPOT, 1), (THROUGHPUT, -1)])
@pytest.mark.parametrize(
    ("cost", "length", "word"),
    [(1.0, 1.7, Word.PASSED), (0.6, 2.6, Word.IMPROVED), (1.3, 1.2, Word.REGRESSED)],
)
def test_a_step_must_give_as_many_tokens_as_it_costs(
    metric: str, turn: int, cost: float, length: float, word: Word
) -> None:
    found = account(metric, cost**turn, length)
    assert found.length == length
    assert found.needed == pytest.approx(length * cost, rel=0.01)
    assert found.verdict.word is word


def test_how_much_it_must_be_worth_can_be_asked() -> None:
    assert account(TPOT, 0.7, 2.0, at_least=1.2).verdict.word is Word.PASSED
    assert account(TPOT, 0.95, 2.0, at_least=1.2).verdict.word is Word.REGRESSED


def test_it_reads_as_an_account() -> None:
    assert str(account(TPOT, 1.3, 1.2)) == (
        "speculation does not pay: acceptance length 1.2, and it breaks even at 1.56"
    )
    assert "speculation pays" in str(account(TPOT, 0.5, 2.0))


def test_what_cannot_be_compared_says_so() -> None:
    off, on = interleaved(TPOT, [10.0] * 4, [10.0] * 4)
    with pytest.raises(ValueError, match="against an arm without it"):
        break_even(on, off, gate(TPOT))
    with pytest.raises(ValueError, match="and an acceptance length"):
        break_even(on, off, gate(TPOT, reference="off"))
