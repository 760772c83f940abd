"""A diagnosis: what the doctor found out about this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pytest_llmperf.model.ceiling import Ceiling
from pytest_llmperf.model.finding import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The checks of one machine.

    Attributes:
        machine: as people write it ("8x NVIDIA H200").
        node: host name.
        findings: one row of the table each, in the order of the checks.
        client: what the load client carries, by number of workers; () where it was not tried.
    """

    machine: str
    node: str
    findings: tuple[Finding, ...]
    client: tuple[Ceiling, ...] = ()

    @property
    def fit(self) -> bool:
        """Whether nothing that is required failed."""
        return not any(finding.invalidates for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        findings = [finding.to_dict() for finding in self.findings]
        return {**asdict(self), "fit": self.fit, "findings": findings}
