"""A case result: all that the reports, the items and the exit status need of one measured case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_llmperf.model.finding import Finding
from pytest_llmperf.model.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case after its measurement and judgement.

    Attributes:
        case: id.
        nodeid: pytest's id of the case.
        hardware: as people write it ("8x NVIDIA H200").
        verdicts: of every gated metric that was selected.
        metrics: mean of the candidate's runs for every metric that could be computed, gated or not.
        findings: of the preconditions and of the runs' validity.
        failure: text of the crash or sanity failure, "" when there was none.
        skipped: why nothing was measured, "" when something was.
        changed: environment facts that differ from the reference: key -> (reference, candidate).
        runs: ids of all runs, in order.
        elapsed_s: wall time of the whole case.
    """

    suite: str
    case: str
    nodeid: str
    arm: str
    hardware: str
    verdicts: tuple[Verdict, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    failure: str = ""
    skipped: str = ""
    changed: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    elapsed_s: float = 0.0
