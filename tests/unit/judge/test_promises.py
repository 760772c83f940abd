"""Promises between arms: the candidate is to be so many times as good as the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pytest_llmperf.judge import confirm, judge
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.verdict import Verdict, Word
from tests.unit.judge.worlds import ABBAABBA, THROUGHPUT, TPOT, gate, interleaved

REFERENCE = [100.0, 101.0, 99.0, 100.5]


def promise(metric: str, at_least: float, margin: float = 0.03) -> Gate:
    return replace(gate(metric, margin, reference="vllm"), at_least=at_least)


def one(metric: str, factor: float, at_least: float) -> Verdict:
    candidate = [factor * value for value in (100.4, 99.2, 100.9, 99.8)]
    (verdict,) = judge(*interleaved(metric, REFERENCE, candidate), [promise(metric, at_least)])
    return verdict


@pytest.mark.parametrize(
    ("factor", "at_least", "word"),
    [
        (1.10, 1.10, Word.PASSED),
        (1.30, 1.10, Word.PASSED),
        (1.00, 1.10, Word.REGRESSED),
        (1.05, 1.10, Word.REGRESSED),
        (1.00, 1.00, Word.PASSED),
        (0.93, 0.90, Word.PASSED),
        (0.85, 0.90, Word.REGRESSED),
    ],
)
def test_a_promise_is_kept_or_broken(factor: float, at_least: float, word: Word) -> None:
    throughput = one(THROUGHPUT, factor, at_least)
    assert throughput.word is word
    assert throughput.change == pytest.approx(factor - 1, abs=0.005)
    assert one(TPOT, 1 / factor, at_least).word is word  # as good in a latency is divided by


def test_the_test_is_against_a_shifted_null() -> None:
    verdict = one(THROUGHPUT, 1.05, 1.10)
    candidate = [1.05 * value for value in (100.4, 99.2, 100.9, 99.8)]
    y = -np.log(np.array([*REFERENCE, *candidate]))
    design = np.column_stack([np.ones(8), [0] * 4 + [1] * 4, [*ABBAABBA[0], *ABBAABBA[1]]])
    beta, rss, *_ = np.linalg.lstsq(design, y, rcond=None)
    se = float(np.sqrt(rss[0] / 5 * np.linalg.inv(design.T @ design)[1, 1]))
    assert verdict.p_fail == pytest.approx(stats.t.sf((beta[1] + np.log(1.10)) / se, 5))
    assert verdict.p_pass == pytest.approx(stats.t.cdf((beta[1] + np.log(1.10) + np.log(0.97)) / se, 5))


def test_a_promise_of_one_is_an_ordinary_comparison() -> None:
    plain = interleaved(THROUGHPUT, REFERENCE, [97.0, 99.0, 96.0, 98.0])
    (ordinary,) = judge(*plain, [gate(THROUGHPUT, 0.03, reference="vllm")])
    (promised,) = judge(*plain, [promise(THROUGHPUT, 1.0)])
    assert replace(promised, at_least=None) == ordinary


def test_a_broken_promise_is_confirmed_against_the_promise() -> None:
    red = one(THROUGHPUT, 1.0, 1.10)
    asked = promise(THROUGHPUT, 1.10)
    assert confirm(red, asked, 100.0, 104.0).word is Word.REGRESSED
    assert confirm(red, asked, 100.0, 110.0).word is Word.INCONCLUSIVE


def test_noise_that_leaves_a_promise_open_says_from_where_it_counts() -> None:
    candidate = [103.0, 110.5, 104.0, 108.5]
    (verdict,) = judge(*interleaved(THROUGHPUT, REFERENCE, candidate), [promise(THROUGHPUT, 1.10, 0.06)])
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.cause.endswith("counted from 1.1 times vllm")
