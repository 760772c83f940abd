"""A baseline as a person reads it: what it holds, how much the runs differ, who accepted it and why."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from pytest_llmperf.baseline.baseline import Baseline
from pytest_llmperf.metrics.definitions import METRICS


def describe(file: str, baseline: Baseline) -> Iterator[str]:
    """Lines for a terminal."""
    accepted = baseline.accepted
    sessions = len(baseline.sessions)
    yield f"{file}   {baseline.case}"
    yield f"  accepted {accepted.on} at {accepted.commit}: {accepted.why}"
    for name, groups in sorted(baseline.metrics.items()):
        values = [value for group in groups for value in group]
        metric = METRICS[name]
        mean = statistics.fmean(values)
        spread = ""
        if len(values) > 1:
            deviation = statistics.stdev(values)
            spread = f"   CV {deviation / mean:.2%}" if metric.scale == "ratio" else f"   sd {deviation:.4g}"
        yield (
            f"  {name:<24} {mean:.6g} {metric.unit}   {len(values)} run{'s' * (len(values) != 1)}"
            f" in {sessions} session{'s' * (sessions != 1)}{spread}"
        )
