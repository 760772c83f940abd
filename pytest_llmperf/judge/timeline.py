"""What each metric of a case did over its sessions, and what changed where it did. Advice, never a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pytest_llmperf.checks.comparability import changed
from pytest_llmperf.judge.history import ChangePoint, Creep, Modes, creep, modes, trend
from pytest_llmperf.model.gate import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One server start.

    Attributes:
        started: of its first run, UTC, ISO 8601.
        facts: environment of its first run.
        values: means over its runs, by metric.
    """

    id: str
    started: str
    facts: Mapping[str, str]
    values: Mapping[str, float]

    @property
    def day(self) -> str:
        """YYYY-MM-DD."""
        return self.started[:10]


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The committed baseline of one metric: its mean, and the day on which it was accepted."""

    value: float
    on: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change point with its circumstances.

    Attributes:
        session: the first one at the new level.
        changed: facts that are new with it: key -> (before, after).
    """

    point: ChangePoint
    session: Session
    changed: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One metric of a case, over the sessions that have a value of it.

    Attributes:
        gate: its direction and margin.
        anchor: None without a baseline.
        doubtful: whether the nights are so correlated that ``steps`` may be noise; ``autocorrelation`` says how much.
        creep: None where the latest sessions after ``anchor.on`` are within the margin.
    """

    gate: Gate
    sessions: tuple[Session, ...]
    anchor: Anchor | None
    steps: tuple[Step, ...]
    autocorrelation: float | None
    doubtful: bool
    modes: Modes | None
    creep: Creep | None

    @property
    def values(self) -> list[float]:
        """One for each session."""
        return [session.values[self.gate.metric.name] for session in self.sessions]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseHistory:
    """All metrics of one case on one arm; ``sessions`` in order of time, ``runs`` in all of them."""

    suite: str
    case: str
    arm: str
    runs: int
    sessions: tuple[Session, ...]
    timelines: tuple[Timeline, ...]


def timeline(sessions: Sequence[Session], gate: Gate, anchor: Anchor | None = None) -> Timeline | None:
    """What a metric did; None where no session has a value that can be put on its scale.

    Args:
        sessions: in order of time.
        gate: the metric; change points are at least its floor, and creep is beyond its margin.
        anchor: sessions until the day of its acceptance do not count as creep.
    """
    name = gate.metric.name
    known = tuple(each for each in sessions if name in each.values and _can_be_judged(each.values[name], gate))
    if not known:
        return None
    values = [each.values[name] for each in known]
    found = trend(values, gate)
    starts = [0, *(point.at for point in found.points)]
    steps = tuple(
        Step(point=point, session=known[point.at], changed=_changed(known[start : point.at], known[point.at :]))
        for start, point in zip(starts, found.points, strict=False)
    )
    return Timeline(
        gate=gate,
        sessions=known,
        anchor=anchor,
        steps=steps,
        autocorrelation=found.autocorrelation,
        doubtful=found.doubtful,
        modes=modes(values, gate),
        creep=_creep(known, gate, anchor),
    )


def _changed(before: Sequence[Session], after: Sequence[Session]) -> dict[str, tuple[str, str]]:
    """Facts that are new at a change point, from the last but one session before it to the second behind it.

    A change point is off by one now and then, and both sides have three sessions or more. A value that the level before
    had already is not new: sessions that take turns on several nodes say nothing by that.
    """
    differing = changed(before[-2].facts, after[1].facts)
    return {
        key: (old, new)
        for key, (old, new) in differing.items()
        if all(session.facts.get(key) != new for session in before[:-1])
    }


def _creep(sessions: Sequence[Session], gate: Gate, anchor: Anchor | None) -> Creep | None:
    if anchor is None or not _can_be_judged(anchor.value, gate):
        return None
    values = [each.values[gate.metric.name] for each in sessions if each.day > anchor.on.isoformat()]
    return creep(values, anchor.value, gate) if values else None


def _can_be_judged(value: float, gate: Gate) -> bool:
    return math.isfinite(value) and (value > 0 or gate.metric.scale == "absolute")
