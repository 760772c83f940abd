"""What everybody does, to compare with: the requests of all runs thrown together, as if they were independent.

Requests of one run share its luck and follow each other in one queue. A test that counts them as samples sees the luck
of a run as a change of the engine.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

REQUESTS = 400
LOG_SD, FOLLOWING = 0.5, 0.7
STALLS, STALL = 0.01, 4.0
RUN_SD = 0.02

Floats = npt.NDArray[np.float64]


def ttfts(rng: np.random.Generator, draws: int, runs: int) -> Floats:
    """TTFTs of healthy runs (draw, run, request): log-normal, lag-1 correlated, 1 % stalled, run luck of 2 %."""
    noise = rng.normal(size=(REQUESTS, draws, runs))
    for place in range(1, REQUESTS):
        noise[place] = FOLLOWING * noise[place - 1] + np.sqrt(1 - FOLLOWING**2) * noise[place]
    luck = RUN_SD * rng.normal(size=(draws, runs))
    stalled = np.where(rng.random(noise.shape) < STALLS, STALL, 1.0)
    return np.asarray(np.moveaxis(np.exp(LOG_SD * noise + luck) * stalled, 0, -1), dtype=np.float64)


def false_alarms(unit: Literal["request", "run"], draws: int, seed: int = 1) -> float:
    """Share of healthy comparisons of 3 runs with 5 that a one-sided t test at 5 % calls a loss.

    Of requests it is Welch's, of runs the pooled one on the logarithms of their means.
    """
    rng = np.random.default_rng(seed)
    reference, candidate = (ttfts(rng, draws, runs) for runs in (5, 3))
    if unit == "run":
        reference, candidate = (np.log(side.mean(axis=2)) for side in (reference, candidate))
    reference, candidate = (side.reshape(draws, -1) for side in (reference, candidate))
    result = stats.ttest_ind(candidate, reference, axis=1, equal_var=unit == "run", alternative="greater")
    return float(np.mean(result.pvalue <= 0.05))
