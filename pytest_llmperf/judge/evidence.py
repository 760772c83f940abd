"""Evidence: a difference with its error, and all that a verdict says about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_llmperf.model.gate import Gate
from pytest_llmperf.stats import student

CONFIDENCE_TAIL = 0.05
"""Each tail of the 90 % interval, and the level at which ``visible`` asks for power."""
MISSED = 0.2
"""``visible`` is what would be missed in one of five cases."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a comparison found, on the scale of judgement, where a positive difference is worse.

    Attributes:
        difference: d, candidate less reference.
        se: its standard error.
        df: degrees of freedom of the error.
        null: the difference that is just allowed (``Gate.null``); the tests and ``excess`` count from there.
    """

    difference: float
    se: float
    df: float
    null: float = 0.0

    @property
    def excess(self) -> float:
        """How much worse than just allowed."""
        return self.difference - self.null

    def _t(self, shift: float) -> float:
        gap = self.excess - shift
        if self.se > 0:
            return gap / self.se
        return math.copysign(math.inf, gap) if gap else 0.0

    @property
    def p_worse(self) -> float:
        """The p of "no worse than allowed" (d <= null), small when it is worse."""
        return student.sf(self._t(0), self.df)

    @property
    def p_better(self) -> float:
        """The p of "no better than allowed" (d >= null), small when it is better."""
        return student.cdf(self._t(0), self.df)

    def p_loss(self, delta: float) -> float:
        """The p of "worse by the margin or more" (d >= null + delta), small when such a loss is excluded."""
        return student.cdf(self._t(delta), self.df)

    @property
    def visible(self) -> float:
        """The smallest loss seen in four of five cases at 5 %, metric alone: ``(t(.05) + t(.2)) se``."""
        return (student.isf(CONFIDENCE_TAIL, self.df) + student.isf(MISSED, self.df)) * self.se

    def interval(self, gate: Gate) -> tuple[float, float]:
        """The 90 % confidence interval of the change as people read it, low end first."""
        half = student.isf(CONFIDENCE_TAIL, self.df) * self.se
        ends = gate.change(self.difference - half), gate.change(self.difference + half)
        return min(ends), max(ends)
