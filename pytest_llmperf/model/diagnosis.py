"""A diagnosis: what the doctor found out about this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pytest_llmperf.model.ceiling import Ceiling
from pytest_llmperf.model.finding import Finding
from pytest_llmperf.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The checks of one machine.

    Attributes:
        machine: as people write it ("8x NVIDIA H200").
        node: host name.
        findings: one row of the table each, in the order of the checks.
        client: what the load client carries, by number of workers; () where it was not tried.
        profile: of the class of hardware that it was judged as; "" where it was not looked at.
        snapshot: the machine as it was read, for a recording; None where it could not be.
    """

    machine: str
    node: str
    findings: tuple[Finding, ...]
    client: tuple[Ceiling, ...] = ()
    profile: str = ""
    snapshot: Snapshot | None = None

    @property
    def fit(self) -> bool:
        """Whether nothing that is required failed."""
        return not any(finding.invalidates for finding in self.findings)

    @property
    def unverified(self) -> tuple[str, ...]:
        """The checks that are required and could not be read: no pass, and no failure."""
        return tuple(finding.check for finding in self.findings if finding.unverified)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; the snapshot, which names people and hosts, is no part of them."""
        return {
            "machine": self.machine,
            "node": self.node,
            "profile": self.profile,
            "fit": self.fit,
            "findings": [finding.to_dict() for finding in self.findings],
            "client": [asdict(ceiling) for ceiling in self.client],
        }
