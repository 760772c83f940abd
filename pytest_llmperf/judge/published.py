"""Measured values beside published ones: a comparison that is shown and never red."""

from __future__ import annotations

from datetime import date

from pytest_llmperf.judge import stored
from pytest_llmperf.judge.samples import read
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.metric import Metric
from pytest_llmperf.model.published import Beside, Published
from pytest_llmperf.stats.variance import mean


def beside(published: Published, metric: Metric, candidate: Measurement, on: date) -> Beside | None:
    """The published number beside the candidate's runs; None where these have no usable value.

    Args:
        published: the constant.
        metric: the row of the metric table that it is compared with.
        candidate: all runs.
        on: today, for the expiry.

    Raises:
        ValueError: the metric is another one, or the published value can be none of it.
    """
    if published.metric != metric.name:
        raise ValueError(f"{published.metric} ({published.source}) cannot be compared with {metric.name}")
    gate = Gate(metric=metric, margin=metric.margin)
    here = read(candidate.of(metric.name), gate, candidate.invalid.get(metric.name, ""))
    if here.fault:
        return None
    evidence = stored.against_constant(gate, gate.transform(published.value), here.layout)
    return Beside(
        published=published,
        measured=mean([run.value for run in here.runs]),
        change=gate.change(evidence.difference),
        interval=evidence.interval(gate),
        runs=len(here.runs),
        expired=on >= published.expires,
    )
