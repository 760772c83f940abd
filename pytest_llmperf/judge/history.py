"""What many nights say together: change points, creep, two modes, a slow node. Advice, never a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytest_llmperf.model.gate import Gate
from pytest_llmperf.stats import clusters, energy
from pytest_llmperf.stats.series import autocorrelation
from pytest_llmperf.stats.variance import mean, sum_of_squares

CHANGE_LEVEL = 0.001
LONGEST = 200
"""Sessions that are looked at, the latest ones: a split costs the square of it."""
CREEP_NIGHTS = 7
CORRELATED = 0.3
"""Lag-1 autocorrelation above which false change points are several times as many; docs/verdicts.md."""
FEWEST_FOR_MODES = 8
APART = 6.0
"""Standard deviations between two modes. A split of one normal cloud shows 2.7, of eight values of it rarely 6."""
SWITCHES = 3
"""Changes of mode from night to night: one is a step and two are an excursion, which change points show."""
NODE_NIGHTS = 3
NODE_LEVEL = 0.001
METRIC_LEVEL = 0.05
NODE_CHANGE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """A new level.

    Attributes:
        at: index of its first session in the series.
        before, after: means of the segments on both sides, in the metric's unit.
        change: as ``Verdict.change``.
        worse: whether it is a loss.
    """

    at: int
    before: float
    after: float
    change: float
    worse: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """What one metric did over its sessions.

    Attributes:
        points: change points, in order.
        autocorrelation: lag-1, of the sessions within the segments; None for too few.
        doubtful: whether it is so high that ``points`` may be noise.
    """

    points: tuple[ChangePoint, ...]
    autocorrelation: float | None
    doubtful: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Creep:
    """The latest sessions have crept away from the anchor by more than the margin.

    Attributes:
        change: mean of the latest ``CREEP_NIGHTS`` sessions against the anchor.
        nights: for how many nights on end such a mean has been beyond the margin.
    """

    change: float
    nights: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """A metric that takes two values in turns: the mean of both is none that was ever measured."""

    low: float
    high: float
    low_sessions: int
    high_sessions: int
    unit: str

    def __str__(self) -> str:
        return f"two modes: {self.low:.3g} and {self.high:.3g} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """One session: where it ran, and its values (means over its runs) by a name of metric and case."""

    node: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowNode:
    """A node whose sessions are worse than those of the others.

    Attributes:
        change: median over the metrics of how much worse, a positive share.
        slow: metrics that are worse on it with p <= ``METRIC_LEVEL``.
        metrics: metrics that could be compared.
        nights: its sessions.
    """

    node: str
    change: float
    slow: int
    metrics: int
    nights: int

    def __str__(self) -> str:
        share = f"{100 * self.change:.2g} %"
        return f"{self.node}: {share} slow on {self.slow} of {self.metrics} metrics, {self.nights} nights"


def trend(values: Sequence[float], gate: Gate) -> Trend:
    """Change points of session means in order of time: E-divisive, p .001, at least the gate's floor.

    Raises:
        ValueError: a value that the metric cannot have.
    """
    start = max(0, len(values) - LONGEST)
    series = [gate.transform(value) for value in values[start:]]
    points = energy.change_points(series, level=CHANGE_LEVEL, smallest=gate.floor)
    parts = [series[first:last] for first, last in pairwise([0, *points, len(series)])]
    rest = autocorrelation([value - mean(part) for part in parts for value in part])
    found = tuple(
        ChangePoint(
            at=start + at,
            before=gate.untransform(mean(left)),
            after=gate.untransform(mean(right)),
            change=gate.change(mean(right) - mean(left)),
            worse=mean(right) > mean(left),
        )
        for at, (left, right) in zip(points, pairwise(parts), strict=True)
    )
    return Trend(points=found, autocorrelation=rest, doubtful=rest is not None and rest > CORRELATED)


def creep(values: Sequence[float], anchor: float, gate: Gate) -> Creep | None:
    """Whether the mean of the latest sessions is worse than the anchor by the margin or more; None where it is not.

    A gate that compares with recent sessions alone follows a slow sink; this does not.
    """
    series = [gate.transform(value) - gate.transform(anchor) for value in values]
    means = [mean(series[end - CREEP_NIGHTS : end]) for end in range(CREEP_NIGHTS, len(series) + 1)]
    nights = next((i for i, value in enumerate(reversed(means)) if value < gate.delta), len(means))
    return Creep(change=gate.change(means[-1]), nights=nights) if nights else None


def modes(values: Sequence[float], gate: Gate) -> Modes | None:
    """Two modes that the sessions take in turns; None for one, and for a level that changed once or twice."""
    if len(values) < FEWEST_FOR_MODES:
        return None
    series = [gate.transform(value) for value in values]
    found = clusters.halves(series, max(2, math.ceil(len(series) / 10)))
    if found is None or found.separation < APART or found.high - found.low < gate.floor:
        return None
    upper = [value > found.border for value in series]
    if sum(first != second for first, second in pairwise(upper)) < SWITCHES:
        return None
    low, high = sorted((gate.untransform(found.low), gate.untransform(found.high)))
    lower = sum(value < (low + high) / 2 for value in values)
    return Modes(low=low, high=high, low_sessions=lower, high_sessions=len(values) - lower, unit=gate.metric.unit)


def slow_nodes(nights: Sequence[Night], gates: Mapping[str, Gate]) -> list[SlowNode]:
    """The nodes that are slow on most metrics, the slowest first.

    Metrics of one night share its luck, so a night is one value: the mean over its metrics, each in its own standard
    deviations. A node of ``NODE_NIGHTS`` or more is tested against all others (one-sided t, ``NODE_LEVEL`` over the
    number of nodes) and must be worse by ``NODE_CHANGE`` in the median metric. Only ratio metrics are looked at.

    Args:
        nights: in any order.
        gates: name -> gate, for the direction and scale of each name in ``Night.values``.
    """
    names = [name for name, gate in gates.items() if gate.metric.scale == "ratio"]
    scores = _scores(nights, gates, names)
    count: dict[str, int] = {}
    for night in nights:
        count[night.node] = count.get(night.node, 0) + 1
    tested = [node for node, own in count.items() if own >= NODE_NIGHTS and len(nights) - own >= NODE_NIGHTS]
    found = []
    for node in tested:
        inside, outside = _sides(nights, scores, node)
        if len(inside) < NODE_NIGHTS or _worse_p(inside, outside) > NODE_LEVEL / len(tested):
            continue
        slow = _slow(nights, gates, names, node)
        if slow is not None and slow.change >= NODE_CHANGE:
            found.append(slow)
    return sorted(found, key=lambda each: (-each.change, each.node))


def _scores(nights: Sequence[Night], gates: Mapping[str, Gate], names: Sequence[str]) -> list[float | None]:
    """By night the mean over its metrics of (value - mean) / standard deviation; None for a night without any."""
    standard: list[list[float]] = [[] for _ in nights]
    for name in names:
        known = [
            (i, gates[name].transform(night.values[name])) for i, night in enumerate(nights) if name in night.values
        ]
        values = [value for _, value in known]
        spread = math.sqrt(sum_of_squares(values) / (len(values) - 1)) if len(values) > 1 else 0.0
        if spread:
            for i, value in known:
                standard[i].append((value - mean(values)) / spread)
    return [mean(values) if values else None for values in standard]


def _sides(nights: Sequence[Night], values: Sequence[float | None], node: str) -> tuple[list[float], list[float]]:
    inside = [v for night, v in zip(nights, values, strict=True) if v is not None and night.node == node]
    outside = [v for night, v in zip(nights, values, strict=True) if v is not None and night.node != node]
    return inside, outside


def _slow(nights: Sequence[Night], gates: Mapping[str, Gate], names: Sequence[str], node: str) -> SlowNode | None:
    differences, slow = [], 0
    for name in names:
        values = [gates[name].transform(night.values[name]) if name in night.values else None for night in nights]
        inside, outside = _sides(nights, values, node)
        if len(inside) >= NODE_NIGHTS and len(outside) >= NODE_NIGHTS:
            differences.append(mean(inside) - mean(outside))
            slow += _worse_p(inside, outside) <= METRIC_LEVEL
    if not differences:
        return None
    middle = sorted(differences)[len(differences) // 2]
    own = sum(night.node == node for night in nights)
    return SlowNode(node=node, change=math.expm1(middle), slow=slow, metrics=len(differences), nights=own)


def _worse_p(inside: Sequence[float], outside: Sequence[float]) -> float:
    two_sided = energy.shift_p(inside, outside)
    return two_sided / 2 if mean(inside) > mean(outside) else 1 - two_sided / 2
