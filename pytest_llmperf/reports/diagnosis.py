"""A diagnosis as lines for a terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pytest_llmperf import __version__
from pytest_llmperf.model.ceiling import Ceiling, Step
from pytest_llmperf.model.diagnosis import Diagnosis
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.reports.layout import aligned

SCHEMA = 1
"""Of the JSON document; raised when a reader of an older one would misread a newer one."""

_HEAD = ("workers", "streams", "chunks/s", "us/chunk", "CPU", "lag p50", "p99", "ITL p50", "p99", "sent p50", "p99", "")


_MILD = {"warn": "warn", "compare": "differs", "record": "noted"}
"""What a failure is called where it does not make a machine unfit."""


def render(diagnosis: Diagnosis) -> list[str]:
    """The table of checks, what to do about those that failed, and the steps of the client's self-test."""
    shown = [finding for finding in diagnosis.findings if finding.status is not Status.NOT_APPLICABLE]
    absent = len(diagnosis.findings) - len(shown)
    return [
        f"{diagnosis.machine} ({diagnosis.node}): {_fitness(diagnosis)}",
        *(f"  {line}" for line in aligned([_row(finding) for finding in shown])),
        *([f"  {absent} more checks do not apply here"] if absent else []),
        *(f"  {finding.check}: {finding.remedy}" for finding in diagnosis.findings if _can_be_mended(finding)),
        *_self_test(diagnosis.client),
    ]


def render_json(diagnosis: Diagnosis) -> str:
    """``{"schema", "pytest_llmperf", "machine", "node", "profile", "fit", "findings": [...], "client": [...]}``."""
    document = {"schema": SCHEMA, "pytest_llmperf": __version__, **diagnosis.to_dict()}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _fitness(diagnosis: Diagnosis) -> str:
    words = "fit to measure" if diagnosis.fit else "NOT fit to measure"
    unread = diagnosis.unverified
    return f"{words}; required, and could not be read: {', '.join(unread)}" if unread else words


def _row(finding: Finding) -> tuple[str, ...]:
    failed = finding.status is Status.FAIL
    status = _MILD.get(finding.policy, str(finding.status)) if failed else str(finding.status)
    expected = f" (expected {finding.expected})" if failed and finding.expected else ""
    value = finding.evidence if finding.value == str(finding.status) else finding.value
    return finding.check, status, f"{value}{expected}"


def _can_be_mended(finding: Finding) -> bool:
    return finding.status is Status.FAIL and finding.policy != "record" and finding.remedy != ""


def _self_test(ceilings: Sequence[Ceiling]) -> Iterator[str]:
    steps = [_step(step) for ceiling in ceilings for step in ceiling.steps]
    if not steps:
        return
    yield "self-test of the client (times in ms; CPU of the busiest worker; ITL as it was seen, and as it was sent):"
    yield from (f"  {line}" for line in aligned([_HEAD, *steps], right=range(len(_HEAD) - 1)))


def _step(step: Step) -> tuple[str, ...]:
    seen = ("", "") if step.itl_ms is None else tuple(f"{gap:.2f}" for gap in step.itl_ms)
    return (
        str(step.workers),
        str(step.streams),
        f"{step.chunks_per_s:.0f}",
        f"{step.cpu_us_per_chunk:.1f}",
        f"{step.client.cpu_share:.0%}",
        f"{step.client.lag_p50_ms:.2f}",
        f"{step.client.lag_p99_ms:.2f}",
        *seen,
        f"{step.sent.gap_p50_ms:.2f}",
        f"{step.sent.gap_p99_ms:.2f}",
        _outcome(step),
    )


def _outcome(step: Step) -> str:
    if step.limit == "client":
        return f"INVALID: {step.why}"
    return step.why or ("valid" if step.tails else "valid, but for percentiles")
