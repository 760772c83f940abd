"""The budget of a suite: how long it may take in one session."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from pytest_llmperf.clock import Clock
from pytest_llmperf.errors import BudgetError
from pytest_llmperf.model.suite import Suite


@dataclass
class Budgets:
    """The time of each suite of a session; it counts from the first question."""

    clock: Clock
    _begun_ns: dict[Path, int] = field(default_factory=dict)

    def left_s(self, suite: Suite) -> float:
        """Seconds that a suite may still take, negative where it has taken more; infinite without a budget."""
        begun = self._begun_ns.setdefault(suite.file, self.clock.monotonic_ns())
        if suite.budget_s is None:
            return math.inf
        return suite.budget_s - (self.clock.monotonic_ns() - begun) / 1e9

    def require_time(self, suite: Suite) -> None:
        """Raises BudgetError: the suite has taken all the time that it may."""
        if self.left_s(suite) <= 0:
            raise BudgetError(f"not run: {suite.name} has used up its budget of {suite.budget_s:g} s")
