"""A case result: all that the reports, the items and the exit status need of one measured case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.published import Beside
from pytest_llmperf.model.verdict import Verdict, Word


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case after its measurement and judgement.

    Attributes:
        case: id.
        nodeid: pytest's id of the case.
        hardware: as people write it ("8x NVIDIA H200").
        subject: what was measured, where the case's id does not say it: a variant, an endpoint; "" otherwise.
        variant: whether it was a variant, or had a loss injected: then it must never be accepted as the baseline.
        arguments: the options that measure the same again.
        verdicts: of every gated metric that was selected.
        failures: of the requests, where the suite lets some of them fail.
        quarantine: why, by whom and until when no red of the case counts; "" where they do.
        beside: published numbers beside what was measured; they are no verdicts.
        account: whether speculation pays, in words, where an arm with it was compared with one without; else "".
        metrics: mean of the candidate's runs for every metric that could be computed, gated or not.
        findings: of the preconditions and of the runs' validity.
        failure: text of the crash or sanity failure, "" when there was none.
        skipped: why nothing was measured or judged, "" when something was.
        changed: environment facts that differ from the reference: key -> (reference, candidate).
        environment: facts of engine, machine and client.
        runs: ids of all runs, in order.
        elapsed_s: wall time of the whole case.
    """

    suite: str
    case: str
    nodeid: str
    arm: str
    hardware: str
    subject: str = ""
    variant: bool = False
    arguments: str = ""
    verdicts: tuple[Verdict, ...] = ()
    failures: Verdict | None = None
    quarantine: str = ""
    beside: tuple[Beside, ...] = ()
    account: str = ""
    metrics: Mapping[str, float] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    failure: str = ""
    skipped: str = ""
    changed: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    elapsed_s: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; ``from_dict`` is the inverse."""
        plain = asdict(self)
        plain["verdicts"] = [{**verdict, "word": str(verdict["word"])} for verdict in plain["verdicts"]]
        if self.failures is not None:
            plain["failures"]["word"] = str(self.failures.word)
        plain["beside"] = [each.to_dict() for each in self.beside]
        plain["findings"] = [finding.to_dict() for finding in self.findings]
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> CaseResult:
        """The result that ``to_dict`` wrote."""
        values = dict(plain)
        values["verdicts"] = tuple(_verdict(verdict) for verdict in values["verdicts"])
        values["failures"] = None if values["failures"] is None else _verdict(values["failures"])
        values["beside"] = tuple(Beside.from_dict(each) for each in values["beside"])
        values["findings"] = tuple(_finding(finding) for finding in values["findings"])
        values["changed"] = {key: (old, new) for key, (old, new) in values["changed"].items()}
        values["runs"] = tuple(values["runs"])
        return cls(**values)


def _verdict(plain: Mapping[str, Any]) -> Verdict:
    interval = plain["interval"]
    return Verdict(
        **{
            **plain,
            "word": Word(plain["word"]),
            "interval": None if interval is None else (interval[0], interval[1]),
        }
    )


def _finding(plain: Mapping[str, Any]) -> Finding:
    metrics = plain["metrics"]
    return Finding(
        **{**plain, "status": Status(plain["status"]), "metrics": None if metrics is None else frozenset(metrics)}
    )
