"""Simulated nights: cases x metrics with correlated noise, looks, and a fresh start for what is red.

The world of the simulation study behind the procedure: 8 cases x 5 metrics, one run in each baseline session, the
candidate's runs in one session. Half of a session's effect is shared by all metrics, half of a run's by the metrics
of a case; true CVs differ from the class prior by a factor exp(.3 N); a fresh start renews half of the session's
variance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pytest_llmperf.judge import LOOKS, confirm, sequential, undecided
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement, Observation
from pytest_llmperf.model.verdict import Verdict, Word
from tests.unit.judge.worlds import gate

Effects = npt.NDArray[np.float64]
"""(cases, metrics) on the scale of judgement, where larger is worse."""

GATES: tuple[Gate, ...] = (
    gate("output_throughput", 0.05),
    gate("mean_tpot_ms", 0.05),
    gate("mean_e2el_ms", 0.05),
    gate("median_ttft_ms", 0.10),
    gate("p99_ttft_ms", 0.15),
)


@dataclass(frozen=True, kw_only=True)
class World:
    """What a night is like.

    Attributes:
        losses: (case, metric) -> true loss as a multiple of the margin, on the scale of judgement.
    """

    cases: int = 8
    sessions: int = 20
    rho: float = 0.5
    losses: Mapping[tuple[int, int], float] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        return self.cases, len(GATES)


@dataclass(frozen=True)
class Night:
    """What came of one night: by case the verdicts before and after the fresh start, and the runs that it took."""

    before: list[list[Verdict]]
    after: list[list[Verdict]]
    runs: list[int]

    @property
    def red_before(self) -> bool:
        return any(verdict.word is Word.REGRESSED for case in self.before for verdict in case)

    @property
    def red(self) -> bool:
        return any(verdict.word is Word.REGRESSED for case in self.after for verdict in case)


def night(world: World, rng: np.random.Generator) -> Night:
    """One night: a baseline, looks at 1, 3 and 5 runs while a gate of the case is open, and a confirmation."""
    scale = _true_cvs(world, rng)
    share, rest = math.sqrt(world.rho), math.sqrt(1 - world.rho)
    loss = np.zeros(world.shape)
    for (case, metric), multiple in world.losses.items():
        loss[case, metric] = multiple * GATES[metric].delta
    baseline = [scale * (share * _session(world, rng) + rest * _run(world, rng)) for _ in range(world.sessions)]
    tonight = _session(world, rng)
    runs = [loss + scale * (share * tonight + rest * _run(world, rng)) for _ in range(LOOKS[-1].runs)]
    renewed = math.sqrt(0.5) * (tonight + _session(world, rng))
    fresh = loss + scale * (share * renewed + rest * _run(world, rng))

    before, after, used = [], [], []
    for case in range(world.cases):
        reference = _measurement(baseline, case, apart=True)
        for look in LOOKS:
            verdicts = sequential(reference, _measurement(runs[: look.runs], case), GATES, family=world.cases)
            if not undecided(verdicts):
                break
        before.append(verdicts)
        used.append(look.runs)
        values = [_value(asked, fresh[case, metric]) for metric, asked in enumerate(GATES)]
        after.append(
            [confirm(v, asked, v.reference or 0.0, x) for v, asked, x in zip(verdicts, GATES, values, strict=True)]
        )
    return Night(before, after, used)


def _true_cvs(world: World, rng: np.random.Generator) -> Effects:
    prior = np.array([each.metric.prior_cv for each in GATES])
    return prior * np.exp(0.3 * rng.normal(size=world.shape))


def _session(world: World, rng: np.random.Generator) -> Effects:
    return math.sqrt(0.5) * (rng.normal() + rng.normal(size=world.shape))


def _run(world: World, rng: np.random.Generator) -> Effects:
    return math.sqrt(0.5) * (rng.normal(size=(world.cases, 1)) + rng.normal(size=world.shape))


def _measurement(runs: list[Effects], case: int, *, apart: bool = False) -> Measurement:
    """Values of one case; ``apart`` puts every run into a session of its own."""
    return Measurement(
        {
            asked.metric.name: tuple(
                Observation(_value(asked, run[case, metric]), f"s{order}" if apart else "tonight", order)
                for order, run in enumerate(runs)
            )
            for metric, asked in enumerate(GATES)
        }
    )


def _value(asked: Gate, effect: float) -> float:
    return 100 * math.exp(asked.sign * float(effect))
