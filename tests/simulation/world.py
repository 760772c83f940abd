"""The world of the nights: 8 cases x 5 metrics whose noise is correlated, and what can be wrong with it.

Half of a session's effect is shared by all metrics of the night, half of a run's by the metrics of a case; true CVs
differ from the class prior by a factor exp(.3 N). The candidate is one session. Of a session's variance a part
stays over a fresh start (the machine, the day) and a part is drawn anew, so that effects before and after correlate by
what stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.gate import Gate
from tests.simulation.laws import LAWS, Effects


def _gate(name: str, margin: float) -> Gate:
    return Gate(metric=METRICS[name], margin=margin)


GATES: tuple[Gate, ...] = (
    _gate("output_throughput", 0.05),
    _gate("mean_tpot_ms", 0.05),
    _gate("mean_e2el_ms", 0.05),
    _gate("median_ttft_ms", 0.10),
    _gate("p99_ttft_ms", 0.15),
)


@dataclass(frozen=True, kw_only=True)
class World:
    """What nights are like.

    Attributes:
        gates: of every case.
        sessions: in the baseline.
        runs: of each baseline session.
        rho: the session's true share of a run's variance.
        law: of session and run effects, a name of ``laws.LAWS``.
        slowed: share of sessions that are slower by 8 %, all metrics alike and unseen; tonight's stays so over a fresh
            start, as a throttled node would.
        drift: how much slower the machine became from the first baseline session to the last; tonight is as the last.
        autocorrelation: lag-1, of the session effects of successive nights.
        recent: sessions of a second reference, 0 for none.
        renewed: share of a session's variance that a fresh start draws anew.
        everywhere: whether a loss of all cases is judged, too, which takes as long again.
        cv_spread: of the logarithm of true CV / prior.
    """

    gates: Sequence[Gate] = field(default=GATES)
    cases: int = 8
    sessions: int = 20
    runs: int = 1
    rho: float = 0.5
    law: str = "normal"
    slowed: float = 0.0
    drift: float = 0.0
    autocorrelation: float = 0.0
    recent: int = 0
    renewed: float = 0.5
    everywhere: bool = False
    cv_spread: float = 0.3

    @property
    def shape(self) -> tuple[int, int]:
        return self.cases, len(self.gates)


@dataclass(frozen=True)
class Noise:
    """One night's noise, without any loss: effects of baselines (session, run, case, metric) and of tonight.

    Attributes:
        candidate: (run, case, metric).
        fresh: (case, metric), after a fresh start.
    """

    anchor: Effects
    recent: Effects
    candidate: Effects
    fresh: Effects


def draw(world: World, rng: np.random.Generator, runs: int) -> Noise:
    """The noise of one night with ``runs`` candidate runs; the same generator state gives the same night."""
    prior = np.array([each.metric.prior_cv if each.cv is None else each.cv for each in world.gates])
    scale = prior * np.exp(world.cv_spread * rng.normal(size=world.shape))
    sessions = _sessions(world, rng, world.recent + world.sessions + 1)
    slow = np.where(rng.random(len(sessions)) < world.slowed, math.log(1.08), 0.0)
    past = world.recent + world.sessions
    trend = np.zeros(past + 1)
    if world.drift:
        trend[:past] = -math.log1p(world.drift) * np.linspace(1, 0, past)

    def runs_of(session: Effects, shift: float, count: int) -> Effects:
        share, rest = math.sqrt(world.rho), math.sqrt(1 - world.rho)
        noise = LAWS[world.law](session) * share + LAWS[world.law](_runs(world, rng, count)) * rest
        return np.asarray(scale * noise + shift, dtype=np.float64)

    stored = np.array([runs_of(sessions[i], slow[i] + trend[i], world.runs) for i in range(past)])
    kept, news = 1 - world.renewed, math.sqrt(1 - (1 - world.renewed) ** 2)
    again = kept * sessions[past] + news * _sessions(world, rng, 1)[0]
    return Noise(
        anchor=stored[: world.sessions],
        recent=stored[world.sessions :],
        candidate=runs_of(sessions[past], slow[past], runs),
        fresh=runs_of(again, slow[past], 1)[0],
    )


def _sessions(world: World, rng: np.random.Generator, count: int) -> Effects:
    """Standard normal effects of successive sessions: (session, case, metric)."""
    own = rng.normal(size=(count, *world.shape))
    shared = rng.normal(size=(count, 1, 1))
    fresh = math.sqrt(0.5) * (own + shared)
    if not world.autocorrelation:
        return fresh
    again, news = world.autocorrelation, math.sqrt(1 - world.autocorrelation**2)
    series = [fresh[0]]
    for effect in fresh[1:]:
        series.append(again * series[-1] + news * effect)
    return np.array(series)


def _runs(world: World, rng: np.random.Generator, count: int) -> Effects:
    """Standard normal effects of runs: (run, case, metric)."""
    return math.sqrt(0.5) * (rng.normal(size=(count, world.cases, 1)) + rng.normal(size=(count, *world.shape)))
