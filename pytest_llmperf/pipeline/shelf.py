"""The shelf: where a case's stored baselines are, and whether this session judges by them or writes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_llmperf import baseline
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.gate import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Where stored baselines are, and whether this session may write them.

    Attributes:
        family: number of gated cases, over which p-values are adjusted.
    """

    store: baseline.Store
    hardware: str
    accept: baseline.Mode
    why: str
    family: int

    def read(self, case: Case) -> list[baseline.Baseline]:
        """The stored baselines of a case that may serve here."""
        return self.store.read_case(self.hardware, case.suite.name, case.id, any_hardware=any_hardware(case))

    def place(self, case: Case, gate: Gate) -> Path:
        """The file that has, or would have, the baseline of one gate."""
        return self.store.path(self._slug(case, gate), case.suite.name, case.id)

    def records(self, case: Case, gate: Gate) -> bool:
        """Whether this session writes the baseline of one gate instead of judging by it."""
        if self.accept != "missing":
            return self.accept == "all"  # without a look at the old one, which may be broken
        return baseline.may_write(self.accept, self.store.read(self._slug(case, gate), case.suite.name, case.id))

    def write(self, case: Case, accepted: baseline.Baseline) -> None:
        """Store what was accepted for a case."""
        self.store.write_case(self.hardware, case.suite.name, accepted, any_hardware=any_hardware(case))

    def _slug(self, case: Case, gate: Gate) -> str:
        return baseline.slug_of(gate.metric.name, self.hardware, any_hardware=any_hardware(case))


def any_hardware(case: Case) -> bool:
    """Whether the counts of a case are kept for any hardware."""
    return case.suite.hardware.gpu is None
