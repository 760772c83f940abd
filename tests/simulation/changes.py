"""Change points in histories of 60 nights: found where there are none, and how soon where there is one."""

from __future__ import annotations

import math

import numpy as np

from pytest_llmperf.judge.history import trend
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.gate import Gate
from tests.simulation.rates import SEED, error

NIGHTS, CV, STEP = 60, 0.02, 0.05
GATE = Gate(metric=METRICS["mean_tpot_ms"], margin=0.05)


def history(rng: np.random.Generator, autocorrelation: float, since: int = 0) -> list[float]:
    """TPOTs of ``NIGHTS`` nights whose last ``since`` are slower by ``STEP``."""
    level, values = rng.normal(), []
    for night in range(NIGHTS):
        level = autocorrelation * level + math.sqrt(1 - autocorrelation**2) * rng.normal()
        values.append(15 * math.exp(CV * level) * (1 + STEP * (night >= NIGHTS - since)))
    return values


def found(autocorrelation: float, since: int, draws: int) -> float:
    """Share of histories with a change point: any where there is no step, else one within three nights of it."""
    rng = np.random.default_rng([SEED, round(100 * autocorrelation), since])
    count = 0
    for _ in range(draws):
        points = trend(history(rng, autocorrelation, since), GATE).points
        count += any(not since or abs(point.at - (NIGHTS - since)) <= 3 for point in points)
    return count / draws


def table(draws: int) -> str:
    """Markdown, of so many histories a row."""
    lines = ["| 60 nights, CV 2 %, changes of 2.5 % or more | change point found |", "|---|---|"]
    rows = [(f"no change, lag-1 autocorrelation {again:g}", again, 0) for again in (0.0, 0.3, 0.5)]
    rows += [(f"5 % slower for the last {since} nights", 0.0, since) for since in (3, 5, 10)]
    for name, again, since in rows:
        share = found(again, since, draws)
        lines.append(f"| {name} | {100 * share:.0f} ± {100 * error(share, draws):.0f} % |")
    return "\n".join(lines) + "\n"
