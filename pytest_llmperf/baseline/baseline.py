"""A baseline: what was measured and accepted for one case on one class of hardware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from pytest_llmperf.checks.comparability import CONDITION
from pytest_llmperf.model.calibration import Calibration
from pytest_llmperf.model.measurement import Measurement, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """Who may be asked about a baseline: the day, the commit that was measured, and why it became one."""

    on: date
    commit: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """One file of the store.

    Attributes:
        kind: ``measured``: every value is one run's.
        case: id.
        workload: digest of what was asked (``model.case.workload_digest``).
        refuse_unless: facts that a candidate must share, by the keys of ``checks.comparability.REFUSE`` but
            ``workload``.
        machine: what the machine was like, by the keys of ``checks.comparability.CONDITION`` without that prefix; {}
            of counts, and where nothing of it was compared.
        environment: facts that are shown when they differ, by the keys of ``checks.comparability.COMPARE``.
        calibration: the noise of some of its metrics, without correlations; None where nobody measured it. It speaks of
            the class of machine under this load, and outlives the values.
        sessions: one label per server start.
        metrics: name -> for each session the values of its runs; all metrics have the same runs.
    """

    kind: Literal["measured"] = "measured"
    case: str
    workload: str
    refuse_unless: Mapping[str, str]
    environment: Mapping[str, str]
    accepted: Accepted
    sessions: tuple[str, ...]
    metrics: Mapping[str, tuple[tuple[float, ...], ...]]
    machine: Mapping[str, str] = field(default_factory=dict)
    calibration: Calibration | None = None

    @property
    def facts(self) -> dict[str, str]:
        """``refuse_unless`` with workload and machine: what ``checks.comparability.refusals`` asks for."""
        machine = {f"{CONDITION}{name}": value for name, value in self.machine.items()}
        return {**self.refuse_unless, "workload": self.workload, **machine}

    def measurement(self) -> Measurement:
        """The values as the judge takes them, runs in the order of the file."""
        return Measurement({name: self._observations(groups) for name, groups in self.metrics.items()})

    def _observations(self, groups: tuple[tuple[float, ...], ...]) -> tuple[Observation, ...]:
        runs = [(value, label) for label, group in zip(self.sessions, groups, strict=True) for value in group]
        return tuple(Observation(value, label, order) for order, (value, label) in enumerate(runs))
