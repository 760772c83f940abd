"""Rates over many nights, each with its Monte-Carlo error."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np

from pytest_llmperf.model.verdict import Word
from tests.simulation.campaign import MOST_RUNS, Judged, judge_case, losses, references
from tests.simulation.world import World, draw

SEED = 20261130
TPOT = 1
"""Place of the metric that gets a loss of its own."""

Tally = Counter[str]
"""How often each thing was seen. Tallies of parts of the nights add up to the tally of all."""


def tally(world: World, nights: Iterable[int]) -> Tally:
    """Count what comes of the nights with these numbers; a night is the same in whatever part it is counted.

    A night is judged without a loss and with several. Verdicts are local to a case, so a loss in case 0 leaves those of
    the others alone, and they are judged once.
    """
    seen: Tally = Counter()
    for number in nights:
        noise = draw(world, np.random.default_rng([SEED, number]), MOST_RUNS)
        stored = [references(world, noise, case) for case in range(world.cases)]

        def judged(case: int, multiple: float, metrics: Iterable[int]) -> Judged:
            loss = losses(world, multiple, tuple(metrics))
            return judge_case(world, noise, case, stored[case], loss)  # noqa: B023 (called within its turn)

        whole = range(len(world.gates))
        healthy = [judged(case, 0, ()) for case in range(world.cases)]
        _count_healthy(seen, healthy)
        rest = any(case.red for case in healthy[1:])
        for name, multiple, metrics in (("twice", 2, (TPOT,)), ("margin", 1, (TPOT,)), ("case", 1, whole)):
            case = judged(0, multiple, metrics)
            seen[f"{name}: red"] += case.red or rest
            seen[f"{name}: passed"] += case.after[TPOT].word in {Word.PASSED, Word.IMPROVED}
        if world.everywhere:
            seen["all: red"] += case.red or any(judged(other, 1, whole).red for other in range(1, world.cases))
    return seen


def _count_healthy(seen: Tally, cases: list[Judged]) -> None:
    seen["nights"] += 1
    seen["healthy: red"] += any(case.red for case in cases)
    seen["healthy: red before"] += any(case.red_before for case in cases)
    seen["cases"] += len(cases)
    seen["cases: runs"] += sum(case.runs for case in cases)
    seen["cases: settled by one"] += sum(case.runs == 1 for case in cases)
    for case in cases:
        for verdict in case.after:
            seen[f"metrics: {verdict.word}"] += 1


def rate(seen: Tally, name: str) -> float:
    """Share of nights."""
    return seen[name] / seen["nights"]


def error(share: float, nights: int) -> float:
    """Standard error of a share seen in so many nights; at least that of one night, so that 0 % is not certain."""
    return max(math.sqrt(share * (1 - share) / nights), 1 / nights)
