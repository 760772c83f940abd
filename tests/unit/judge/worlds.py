"""Gates, measurements and noise to judge them in; everything random comes from the generator that is passed in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement, Observation

TPOT = "mean_tpot_ms"
THROUGHPUT = "output_throughput"
E2EL = "mean_e2el_ms"
ACCEPTANCE = "acceptance_length"

ABBAABBA = (0, 3, 4, 7), (1, 2, 5, 6)
"""Places in time of reference and candidate, 4 + 4 runs."""


def gate(metric: str = TPOT, margin: float | None = None, **fields: Any) -> Gate:
    row = METRICS[metric]
    return Gate(metric=row, margin=row.margin if margin is None else margin, **fields)


def sample(groups: Sequence[Sequence[float]], prefix: str = "s") -> tuple[Observation, ...]:
    """Values grouped by session, in order of time."""
    runs = [(value, f"{prefix}{i}") for i, group in enumerate(groups) for value in group]
    return tuple(Observation(value, session, order) for order, (value, session) in enumerate(runs))


def measured(prefix: str = "s", /, **metrics: Sequence[Sequence[float]]) -> Measurement:
    return Measurement({name: sample(groups, prefix) for name, groups in metrics.items()})


def interleaved(
    metric: str, reference: Sequence[float], candidate: Sequence[float], places: Sequence[Sequence[int]] = ABBAABBA
) -> tuple[Measurement, Measurement]:
    """Runs of two arms that alternate in time."""
    sides = zip((reference, candidate), places, ("a", "b"), strict=True)
    first, second = (
        Measurement({metric: tuple(Observation(v, session, o) for v, o in zip(values, at, strict=True))})
        for values, at, session in sides
    )
    return first, second


def scaled(measurement: Measurement, factor: float) -> Measurement:
    return Measurement(
        {
            name: tuple(replace(each, value=each.value * factor) for each in observations)
            for name, observations in measurement.samples.items()
        }
    )


def noise(rng: np.random.Generator, cv: float, rho: float, sizes: Sequence[int]) -> list[list[float]]:
    """Log deviations of runs in sessions of these sizes: the share ``rho`` of the variance is the session's."""
    return [list(cv * (math.sqrt(rho) * rng.normal() + math.sqrt(1 - rho) * rng.normal(size=size))) for size in sizes]


def slower(metric: str, loss: float) -> float:
    """The factor that makes a metric worse by ``loss``: times 1 + loss where lower is better, else 1 - loss."""
    return 1 + loss if METRICS[metric].better == "lower" else 1 - loss


def runs_around(centre: float, deviations: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[centre * math.exp(each) for each in group] for group in deviations]
