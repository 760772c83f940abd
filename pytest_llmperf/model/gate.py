"""A gate: the loss of one metric that must not pass."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_llmperf.model.metric import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One metric under judgement.

    Attributes:
        metric: the row of the metric table.
        margin: the loss that must not pass: a share for ratio metrics, in the metric's unit for absolute ones.
        reference: the arm measured in the same session that it is compared with; None for the stored baseline.
        at_least: how many times as good as the arm ``reference`` it must be (1.1: a tenth more throughput, or a latency
            divided by 1.1); None for "no worse". Ratio metrics only.
        auto: whether the margin (and, from ten sessions on, ``cv``) is what the calibration stored with the baseline
            suggests; ``margin`` is the metric's own until ``judge.calibrated`` has put that in.
        cv: declared between-run variation (same scale as ``margin``), or None for the metric's class prior.
            0 declares an exact count: one baseline session decides, and the floor is a tenth of the margin.
        line: where the suite file asks for it.
        only_arms: the arms that it judges, () for all; a variant counts as the arm that it is a variant of, too.
        only_workloads: the workloads that it judges, () for all.
    """

    metric: Metric
    margin: float
    reference: str | None = None
    at_least: float | None = None
    auto: bool = False
    cv: float | None = None
    line: int = 0
    only_arms: tuple[str, ...] = ()
    only_workloads: tuple[str, ...] = ()

    @property
    def sign(self) -> int:
        """+1 where lower is better, -1 where higher is: times this, a positive difference is worse."""
        return 1 if self.metric.better == "lower" else -1

    @property
    def delta(self) -> float:
        """The margin on the scale of judgement: ``ln(1+m)`` or ``-ln(1-m)`` for ratios, ``m`` for absolutes."""
        if self.metric.scale == "absolute":
            return self.margin
        return math.log1p(self.margin) if self.metric.better == "lower" else -math.log1p(-self.margin)

    @property
    def null(self) -> float:
        """The difference from the reference that is just allowed: 0, or ``-ln at_least``."""
        return 0.0 if self.at_least is None else -math.log(self.at_least)

    @property
    def floor(self) -> float:
        """The smallest difference that may be called worse: half of ``delta``, a tenth for exact counts."""
        return self.delta / 10 if self.cv == 0 else self.delta / 2

    def transform(self, value: float) -> float:
        """A metric's value on the scale of judgement, where larger is worse: ``sign * ln x`` or ``sign * x``.

        Raises:
            ValueError: a ratio metric that is not positive and finite; such a value must not reach a judge.
        """
        if self.metric.scale == "absolute":
            if not math.isfinite(value):
                raise ValueError(f"{self.metric.name} = {value}: not finite")
            return self.sign * value
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{self.metric.name} = {value}: a ratio metric must be positive and finite")
        return math.log(value) if self.metric.better == "lower" else -math.log(value)

    def untransform(self, level: float) -> float:
        """The value in the metric's unit that ``transform`` maps to ``level``."""
        return self.sign * level if self.metric.scale == "absolute" else math.exp(self.sign * level)

    def change(self, difference: float) -> float:
        """A difference on the scale of judgement as people read it: a share, or in the unit, signed as measured."""
        if self.metric.scale == "absolute":
            return self.sign * difference
        try:
            return math.expm1(self.sign * difference)
        except OverflowError:  # the end of an interval that excludes nothing
            return math.inf
