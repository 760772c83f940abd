"""The shelf: where a case's stored baselines are, and whether this session judges by them or writes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from pytest_llmperf import baseline, history, judge
from pytest_llmperf.errors import BaselineError
from pytest_llmperf.model.calibration import MARGINS, Calibration
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.published import Published


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

    def calibrated(self, case: Case) -> Case:
        """The case, its gates on stored baselines with what is known there of their noise.

        A baseline that cannot be read calibrates nothing; who judges by it says why. An ``auto`` gate that nothing can
        be promised of stays ``auto``, with the largest margin there is.
        """
        try:
            found = [each.calibration for each in self.read(case) if each.calibration is not None]
        except BaselineError:
            return case
        known = {noise.metric: calibration for calibration in reversed(found) for noise in calibration.noise}
        return replace(case, gates=tuple(_calibrated(gate, known.get(gate.metric.name)) for gate in case.gates))

    def facts(self, case: Case) -> Mapping[str, str]:
        """What the stored baselines were measured under; {} where there is none, or none is judged by."""
        if self.accept == "all":
            return {}
        with suppress(BaselineError):  # the judge will say it
            return {key: value for each in self.read(case) for key, value in each.facts.items()}
        return {}

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

    def published(self, case: Case) -> tuple[Published, ...]:
        """The figures of documents that stand beside the case's own.

        Raises:
            BaselineError: their file cannot be read.
        """
        return self.store.published(self.hardware, case.suite.name, case.id)

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


def _calibrated(gate: Gate, calibration: Calibration | None) -> Gate:
    if gate.reference is not None or calibration is None:
        return gate
    found = judge.calibrated(gate, calibration)
    return replace(gate, margin=MARGINS[-1]) if found is None else replace(found, auto=False)


def any_hardware(case: Case) -> bool:
    """Whether the counts of a case are kept for any hardware."""
    return case.suite.hardware.gpu is None
