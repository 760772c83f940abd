"""The shelf: where a case's stored baselines are, and whether this session judges by them or writes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pytest_llmperf import baseline, history
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Where stored baselines are, and whether this session may write them.

    Attributes:
        save: folder of the saved runs, of which the recent ones are a second reference.
        family: number of gated cases, over which p-values are adjusted.
    """

    store: baseline.Store
    hardware: str
    accept: baseline.Mode
    why: str
    save: Path
    family: int

    def read(self, case: Case) -> list[baseline.Baseline]:
        """The stored baselines of a case that may serve here."""
        return self.store.read_case(self.hardware, case.suite.name, case.id, any_hardware=any_hardware(case))

    def recent(
        self,
        case: Case,
        gates: Sequence[Gate],
        baselines: Sequence[baseline.Baseline],
        *,
        facts: Mapping[str, str],
        without: Collection[str],
        now: datetime,
    ) -> Measurement | None:
        """The recent sessions beside ``baselines``; None where they are too few. See ``history.recent``."""
        found = history.recent(
            self.save,
            case.suite.name,
            case.id,
            [gate.metric.name for gate in gates],
            facts=facts,
            now=now,
            without=without,
            since=max((each.accepted.on for each in baselines), default=None),
        )
        return found.measurement

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
