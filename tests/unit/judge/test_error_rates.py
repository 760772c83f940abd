"""Error rates by simulation: how often a healthy engine is red, and how often a loss is seen.

Seeded, so that a rate is the same at every call and not a matter of luck.
``LLMPERF_DRAWS=20000 pytest --log-cli-level=INFO`` on this file shows the figures of docs/verdicts.md.
"""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from pytest_llmperf.judge import SINGLE, judge
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.verdict import Word
from tests.unit.judge.worlds import (
    ABBAABBA,
    E2EL,
    THROUGHPUT,
    TPOT,
    gate,
    interleaved,
    measured,
    noise,
    runs_around,
    slower,
)

LOG = logging.getLogger(__name__)
DRAWS = int(os.environ.get("LLMPERF_DRAWS", "600"))

Pair = tuple[Measurement, Measurement]


def shares(world: Callable[[np.random.Generator], Pair], asked: Gate) -> dict[Word, float]:
    """How often each word comes out, over ``DRAWS`` data sets of a world."""
    rng = np.random.default_rng(20261130)
    words = Counter(judge(*world(rng), [asked])[0].word for _ in range(DRAWS))
    return {word: words[word] / DRAWS for word in Word}


def report(name: str, found: dict[Word, float]) -> None:
    LOG.info("%s: %s", name, ", ".join(f"{word} {share:.2%}" for word, share in found.items() if share))


def stored(
    metric: str, loss: float, *, cv: float, baseline: list[int], runs: int, rho: float = 0.5, spread: float = 0.0
) -> Callable[[np.random.Generator], Pair]:
    """Baseline sessions of so many runs, and candidate runs of one session; the true CV is off by exp(spread N)."""

    def draw(rng: np.random.Generator) -> Pair:
        true_cv = cv * math.exp(spread * rng.normal())
        stored_runs = runs_around(100, noise(rng, true_cv, rho, baseline))
        candidate = runs_around(100 * slower(metric, loss), noise(rng, true_cv, rho, [runs]))
        return measured(**{metric: stored_runs}), measured("c", **{metric: candidate})

    return draw


def alternating(metric: str, loss: float, *, cv: float, drift: float = 0.0) -> Callable[[np.random.Generator], Pair]:
    """4 + 4 runs A B B A A B B A on a machine that slows down by ``drift`` in all."""

    def draw(rng: np.random.Generator) -> Pair:
        def side(places: tuple[int, ...], factor: float) -> list[float]:
            return [100 * factor * math.exp(cv * rng.normal() + drift * place / 7) for place in places]

        return interleaved(metric, side(ABBAABBA[0], 1), side(ABBAABBA[1], slower(metric, loss)))

    return draw


@pytest.mark.parametrize(
    ("loss", "bar"),
    [(0.0, lambda red: red <= 0.06), (0.05, lambda red: red >= 0.80), (0.10, lambda red: red >= 0.99)],
    ids=["healthy", "at the margin", "twice the margin"],
)
def test_one_metric_against_twenty_sessions(loss: float, bar: Callable[[float], bool]) -> None:
    found = shares(stored(TPOT, loss, cv=0.02, baseline=[1] * 20, runs=3), gate(TPOT, 0.05, cv=0.02))
    report(f"stored, CV 2 %, 20 sessions, 3 runs, loss {loss:.0%}", found)
    assert bar(found[Word.REGRESSED])


@pytest.mark.parametrize(
    ("loss", "rho", "bar"),
    [
        (0.0, 0.2, lambda red: red <= 0.06),
        (0.0, 0.5, lambda red: red <= 0.06),
        (0.0, 0.8, lambda red: red <= 0.08),
        (0.10, 0.5, lambda red: red >= 0.99),
    ],
)
def test_a_baseline_that_tells_the_session_share(loss: float, rho: float, bar: Callable[[float], bool]) -> None:
    world = stored(TPOT, loss, cv=0.02, baseline=[3] * 12, runs=3, rho=rho)
    found = shares(world, gate(TPOT, 0.05, cv=0.02))
    report(f"stored, CV 2 %, 12 sessions of 3 runs, 3 runs, true rho {rho}, loss {loss:.0%}", found)
    assert bar(found[Word.REGRESSED])


@pytest.mark.parametrize(
    ("loss", "bar"),
    [(0.0, lambda red: red <= 0.05), (0.05, lambda red: red >= 0.85)],
    ids=["healthy", "at the margin"],
)
def test_one_run_against_a_baseline_of_one_run_with_a_declared_cv(loss: float, bar: Callable[[float], bool]) -> None:
    found = shares(stored(TPOT, loss, cv=0.01, baseline=[1], runs=1, spread=0.3), gate(TPOT, 0.05, cv=0.01))
    report(f"stored, declared CV 1 %, 1 session, 1 run, loss {loss:.0%}", found)
    assert bar(found[Word.REGRESSED])


DRIFTING = gate(TPOT, 0.05, reference="old")


@pytest.mark.parametrize(
    ("loss", "bar"),
    [(0.0, lambda red: red <= 0.02), (0.05, lambda red: red >= 0.95)],
    ids=["healthy", "at the margin"],
)
def test_alternating_runs_on_a_machine_that_drifts_by_3_percent(loss: float, bar: Callable[[float], bool]) -> None:
    found = shares(alternating(TPOT, loss, cv=0.014, drift=0.03), DRIFTING)
    report(f"4 + 4, CV 1.4 %, drift 3 %, margin 5 %, loss {loss:.0%}", found)
    assert bar(found[Word.REGRESSED])


@pytest.mark.parametrize(
    ("loss", "bar"),
    [(0.0, lambda shown: shown <= 0.065), (0.03, lambda shown: shown >= 0.75)],
    ids=["healthy", "3 %"],
)
def test_the_test_under_the_floor_is_a_five_percent_test(loss: float, bar: Callable[[float], bool]) -> None:
    rng, world = np.random.default_rng(3), alternating(TPOT, loss, cv=0.014, drift=0.03)
    verdicts = [judge(*world(rng), [DRIFTING])[0] for _ in range(DRAWS)]
    shown = sum(each.p_fail is not None and each.p_fail <= SINGLE.alpha for each in verdicts) / DRAWS
    red = sum(each.word is Word.REGRESSED for each in verdicts) / DRAWS
    LOG.info("4 + 4, CV 1.4 %%, drift 3 %%, loss %s: p <= .05 in %.1f %%, red %.1f %%",
             f"{loss:.0%}", 100 * shown, 100 * red)  # fmt: skip
    assert bar(shown)


@pytest.mark.parametrize(("metric", "margin"), [(THROUGHPUT, 0.40), (E2EL, 0.60)])
def test_a_healthy_engine_on_two_noisy_cores(metric: str, margin: float) -> None:
    found = shares(alternating(metric, 0.0, cv=0.10), gate(metric, margin, reference="healthy"))
    report(f"4 + 4, CV 10 %, {metric} margin {margin:.0%}, healthy", found)
    assert found[Word.PASSED] >= 0.99
    assert found[Word.REGRESSED] <= 0.01


@pytest.mark.parametrize(("metric", "margin", "loss"), [(THROUGHPUT, 0.40, 0.5), (E2EL, 0.60, 1.0)])
def test_an_engine_at_half_speed_on_two_noisy_cores(metric: str, margin: float, loss: float) -> None:
    found = shares(alternating(metric, loss, cv=0.10), gate(metric, margin, reference="healthy"))
    report(f"4 + 4, CV 10 %, {metric} margin {margin:.0%}, at half speed", found)
    assert found[Word.REGRESSED] == 1.0
