"""A review: what a saved run says today, computed from its columns, and whether that is what it said when saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pytest_llmperf.model.acceptance import Acceptance
from pytest_llmperf.model.finding import Finding
from pytest_llmperf.model.run import ClientFacts, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A figure that comes out otherwise than it is stored; None where it is not known."""

    name: str
    stored: float | None
    now: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rereading:
    """The raw responses of a run, parsed again.

    Attributes:
        responses: how many were kept.
        differing: by column, in how many of them it comes out otherwise than it is stored.
        first: the first of these in words, "" for none.
    """

    responses: int
    differing: Mapping[str, int]
    first: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One saved run, without its columns.

    Attributes:
        folder: where it is.
        version: of the pytest-llmperf that saved it, "" where it does not say.
        outcomes: how many requests ended how: ok, failed, timed_out, abandoned; those that occur.
        reasons: why requests were not ok, most frequent first.
        token_source: by ``output`` and ``chunks``: how many successful requests have their tokens from where.
        slo: the limits of goodput as people write them, "" for none.
        values: every metric, from the columns.
        differences: what is stored otherwise.
        rereading: None where no raw responses were kept.
    """

    id: str
    folder: str
    suite: str
    case: str
    arm: str
    role: Role
    session: str
    order: int
    started: str
    version: str
    requests: int
    outcomes: Mapping[str, int]
    reasons: Mapping[str, int]
    token_source: Mapping[str, Mapping[str, int]]
    client: ClientFacts
    acceptance: Acceptance | None
    slo: str
    environment: Mapping[str, str]
    findings: tuple[Finding, ...]
    values: Mapping[str, float]
    totals: Mapping[str, float | int | None]
    differences: tuple[Difference, ...]
    rereading: Rereading | None = None

    @property
    def agrees(self) -> bool:
        """Whether everything comes out as it is stored."""
        return not self.differences and (self.rereading is None or not self.rereading.differing)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "findings": [finding.to_dict() for finding in self.findings]}
