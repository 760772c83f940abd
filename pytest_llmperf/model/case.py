"""A case: one arm under one workload and load, with the gates that judge it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.metric import GROUPS, Group
from pytest_llmperf.model.suite import Arm, Load, Suite, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One cell of a suite; measured once for all its items.

    Attributes:
        apart: whether the arm and the one that its gates compare with never run side by side: every measured run has a
            server of its own, started for it, and alone on the machine.
    """

    suite: Suite
    arm: Arm
    workload: Workload
    load: Load
    gates: tuple[Gate, ...]
    apart: bool = False

    @property
    def id(self) -> str:
        """``ARM/WORKLOAD``, or ``ARM/WORKLOAD/LOAD`` when the load has a name; stable when a matrix grows."""
        parts = [self.arm.judged_as, self.workload.name]
        return "/".join(parts if self.load.name is None else [*parts, self.load.name])

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that have a gate here, in the order of the items."""
        gated = {gate.metric.group for gate in self.gates}
        return tuple(group for group in GROUPS if group in gated)

    @property
    def references(self) -> tuple[Arm, ...]:
        """The arms that gates compare with in the same session."""
        wanted = {gate.reference for gate in self.gates if gate.reference is not None}
        return tuple(arm for name, arm in self.suite.arms.items() if name in wanted)

    @property
    def plain_gates(self) -> tuple[Gate, ...]:
        """Each gated metric once, for a comparison of the caller's: no reference, no promise, no calibration.

        Of several gates the first one's margin holds: that of ``gates:`` where there is one, else a relation's.
        """
        first: dict[str, Gate] = {}
        for gate in self.gates:
            first.setdefault(gate.metric.name, replace(gate, reference=None, at_least=None, auto=False))
        return tuple(first.values())

    def against(self, reference: str) -> Case:
        """The case as an A/B: each gated metric is compared once, with the arm ``reference``, and both run apart."""
        gates = tuple(replace(gate, reference=reference) for gate in self.plain_gates)
        return replace(self, gates=gates, apart=True)

    def restricted_to(self, groups: frozenset[Group]) -> Case:
        """The same case with only the gates of ``groups``."""
        return replace(self, gates=tuple(gate for gate in self.gates if gate.metric.group in groups))


def workload_digest(workload: Workload, load: Load) -> str:
    """Identity of what is asked, without the seed: ``sha256:`` over the resolved workload and load definitions.

    Names are left out: renaming a workload does not make results incomparable, changing a length does. So is the
    place of a data file whose content is known, and whatever is not asked for: a new key leaves old digests alone.
    """
    definition = {"workload": _asked(asdict(workload)), "load": _asked(asdict(load))}
    text = json.dumps(definition, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _asked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    aside = {"name", "path"} if value.get("sha256") else {"name"}
    asked = {key: inner for key, inner in value.items() if inner is not None and inner is not False}
    return {key: _asked(inner) for key, inner in asked.items() if key not in aside}
