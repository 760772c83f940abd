"""A night's campaign through the public functions of the judge: looks, runs while undecided, a fresh start for reds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_llmperf.judge import LOOKS, confirm, sequential
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement, Observation
from pytest_llmperf.model.verdict import Verdict, Word
from tests.simulation.laws import Effects
from tests.simulation.world import Noise, World

MOST_RUNS = LOOKS[-1].runs
CENTRE = 100.0


@dataclass(frozen=True)
class Judged:
    """One case of one night: verdicts before and after the fresh start, and the candidate runs that it took."""

    before: Sequence[Verdict]
    after: Sequence[Verdict]
    runs: int

    @property
    def red_before(self) -> bool:
        return any(verdict.word is Word.REGRESSED for verdict in self.before)

    @property
    def red(self) -> bool:
        return any(verdict.word is Word.REGRESSED for verdict in self.after)


def references(world: World, noise: Noise, case: int) -> list[Measurement]:
    """What a case is compared with: its anchor, and the recent sessions where the world has any."""
    stored = [noise.anchor, noise.recent][: 1 + bool(world.recent)]
    return [_measurement(world.gates, effects[:, :, case], name) for effects, name in zip(stored, "ar", strict=False)]


def judge_case(world: World, noise: Noise, case: int, stored: Sequence[Measurement], loss: Effects) -> Judged:
    """One case whose metrics are all worse by ``loss`` (on the scale of judgement).

    All runs are given at once: ``sequential`` looks at no more of them than a campaign would have made.
    """
    candidate = _measurement(world.gates, noise.candidate[None, :, case] + loss, "tonight")
    recent = stored[1] if len(stored) > 1 else None
    before = sequential(stored[0], candidate, world.gates, recent=recent, family=world.cases)
    fresh = noise.fresh[case] + loss
    values = [_value(gate, effect) for gate, effect in zip(world.gates, fresh, strict=True)]
    after = [
        confirm(verdict, gate, verdict.reference or 0.0, value)
        for verdict, gate, value in zip(before, world.gates, values, strict=True)
    ]
    return Judged(before, after, max(verdict.runs for verdict in before))


def losses(world: World, multiple: float, metrics: Sequence[int]) -> Effects:
    """A loss of ``multiple`` margins, in log, of some metrics of a case."""
    loss = np.zeros(len(world.gates))
    for metric in metrics:
        loss[metric] = multiple * world.gates[metric].delta
    return loss


def _measurement(gates: Sequence[Gate], effects: Effects, prefix: str) -> Measurement:
    """Values of one case out of effects (session, run, metric)."""
    count, runs, _ = effects.shape
    places = [(f"{prefix}{session}", session * runs + run) for session in range(count) for run in range(runs)]
    samples = {}
    for metric, gate in enumerate(gates):
        flat = CENTRE * np.exp(gate.sign * effects[:, :, metric].ravel())
        samples[gate.metric.name] = tuple(
            Observation(value, session, order) for value, (session, order) in zip(flat.tolist(), places, strict=True)
        )
    return Measurement(samples)


def _value(gate: Gate, effect: float) -> float:
    return CENTRE * math.exp(gate.sign * float(effect))
