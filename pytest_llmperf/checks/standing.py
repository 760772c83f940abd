"""The standing of a measurement: what it is worth by all findings of its machine."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pytest_llmperf.model.finding import Finding, Status


class Standing(StrEnum):
    """From best to worst."""

    VALID = "valid"
    NOTED = "valid, with notes"
    UNVERIFIED = "unverified"
    INCOMPARABLE = "not comparable"
    INVALID = "invalid"


def standing(findings: Iterable[Finding]) -> Standing:
    """The worst that any finding says."""
    found = list(findings)
    if any(finding.invalidates for finding in found):
        return Standing.INVALID
    if any(finding.incomparable for finding in found):
        return Standing.INCOMPARABLE
    if any(finding.unverified for finding in found):
        return Standing.UNVERIFIED
    noted = any(finding.status is Status.FAIL for finding in found)
    return Standing.NOTED if noted else Standing.VALID
