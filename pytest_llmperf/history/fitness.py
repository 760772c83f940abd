"""Which saved runs say something of an engine's speed, and which of their metrics may be used."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from pytest_llmperf.checks import comparability
from pytest_llmperf.history.folder import AHEAD
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.finding import Finding, forbidden
from pytest_llmperf.model.saved_run import SavedFacts

_OF_ALL_TIMINGS = {"client_cpu", "client_schedule", "delivered_load"}
"""Checks of the whole load: one that failed says so of every time, also of those that were not gated then."""


def is_variant(case: str, arm: str) -> bool:
    """Whether a case is named after another arm, as which this one is judged."""
    return case.partition("/")[0] != arm


def unfit(saved: SavedFacts) -> str:
    """Why a run says nothing of the engine's speed; "" when it does."""
    run = saved.run
    failed, requests = saved.totals["failed"] or 0, saved.totals["num_prompts"] or 0
    if failed > requests * (0.0 if saved.failures is None else saved.failures.limit):
        return f"{failed} of {requests} requests failed"
    if comparability.INJECTED in run.environment:
        return f"a loss was made on purpose: {run.environment[comparability.INJECTED]}"
    whole = [str(finding) for finding in run.findings if finding.invalidates and finding.metrics is None]
    return f"invalid: {'; '.join(whole)}" if whole else ""


def in_the_future(saved: SavedFacts, now: datetime) -> str:
    """Why nobody knows when a run was made; "" where it began by ``now``, give or take ``AHEAD``."""
    ahead = saved.run.began > now + AHEAD
    return f"began at {saved.run.started}, which is yet to come: a clock was wrong" if ahead else ""


def invalid(saved: SavedFacts, metrics: Collection[str]) -> dict[str, str]:
    """Of ``metrics`` those that the run's findings forbid to judge, each with the finding that does."""
    found = forbidden(for_all_timings(saved.run.findings, metrics), metrics, saved.run.id)
    return {name: why for name, why in found.items() if name in metrics}


def for_all_timings(findings: Iterable[Finding], names: Collection[str]) -> list[Finding]:
    """The findings, those of the whole load also about the times among ``names``.

    A run's own findings speak of the metrics that were gated when it was made.
    """
    timings = frozenset(name for name in names if name in METRICS and METRICS[name].timing)
    return [
        replace(finding, metrics=finding.metrics | timings)
        if finding.check in _OF_ALL_TIMINGS and finding.metrics is not None
        else finding
        for finding in findings
    ]
