"""A baseline as a person reads it: what it holds, how much the runs differ, who accepted it and why, its noise."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from pytest_llmperf.baseline.baseline import Baseline
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.calibration import Calibration, Noise
from pytest_llmperf.model.metric import Metric


def describe(file: str, baseline: Baseline) -> Iterator[str]:
    """Lines for a terminal: of each metric the runs that are stored, and the noise that was calibrated."""
    accepted = baseline.accepted
    yield f"{file}   {baseline.case}"
    yield f"  accepted {accepted.on} at {accepted.commit}: {accepted.why}"
    yield f"  {_made(baseline.calibration)}"
    for name, groups in sorted(baseline.metrics.items()):
        values = [value for group in groups for value in group]
        metric = METRICS[name]
        mean = statistics.fmean(values)
        spread = ""
        if len(values) > 1:
            deviation = statistics.stdev(values)
            spread = f"   CV {deviation / mean * 100:.2f} %" if metric.scale == "ratio" else f"   sd {deviation:.4g}"
        yield (
            f"  {name:<24} {mean:.6g} {metric.unit}   {_count(len(values), 'run')}"
            f" in {_count(len(baseline.sessions), 'session')}{spread}"
        )
        if baseline.calibration is not None:
            yield f"  {'':<24} {_noise(baseline.calibration.of(name), metric)}"


def _made(calibration: Calibration | None) -> str:
    if calibration is None:
        return "uncalibrated; `llmperf calibrate --store` keeps the noise of saved runs here"
    when = "" if calibration.on is None else f" {calibration.on}"
    return (
        f"calibrated{when} at {calibration.commit}: {_count(calibration.runs, 'run')} in"
        f" {_count(calibration.sessions, 'session')}; {calibration.red_replays} of {calibration.replays} replays red"
    )


def _noise(noise: Noise | None, metric: Metric) -> str:
    """What was calibrated: CV and its limit, session share, smallest loss visible, suggested margin."""
    if noise is None:
        return "uncalibrated"
    word = "CV" if metric.scale == "ratio" else "sd"
    told = [f"{word} {_size(noise.cv, metric)} (at most {_size(noise.cv_limit, metric)})"]
    if noise.session_share is not None:
        told.append(f"session share {noise.session_share:.2f}")
    if noise.visible:
        runs, loss = noise.visible[len(noise.visible) // 2]  # that of the margin: the second look
        told.append(f"{_size(loss, metric)} visible after {_count(runs, 'run')}")
    told.append("no margin: not to be gated" if noise.margin is None else f"margin {_size(noise.margin, metric)}")
    return f"calibrated: {', '.join(told)}"


def _size(value: float, metric: Metric) -> str:
    return f"{value * 100:.3g} %" if metric.scale == "ratio" else f"{value:.3g}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
