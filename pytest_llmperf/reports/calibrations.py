"""A calibration as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.calibration import Calibration, Noise
from pytest_llmperf.reports.layout import aligned, share

RELATED = 0.7
"""Metrics that move together so closely say the same thing twice, or trade one for the other."""


def render(case: str, calibration: Calibration) -> Iterator[str]:
    """The noise of each metric, what can be seen through it, and which metrics move together."""
    runs = f"{calibration.runs} run{'s' * (calibration.runs != 1)}"
    yield f"{case}   {runs} in {calibration.sessions} sessions"
    looks = [f"visible, {count} run{'s' * (count != 1)}" for count, _ in calibration.noise[0].visible]
    heading = ("metric", "CV", "session share", "lag-1", *looks, "margin", "false alarms")
    rows = [heading, *(_row(noise, calibration.replays) for noise in calibration.noise)]
    yield from (f"  {line}" for line in aligned(rows))
    yield from (f"  {line}" for line in _related(calibration))
    yield (
        f"  {calibration.red_replays} of {calibration.replays} sessions, each judged against the others with these"
        " margins, had a REGRESSED metric before any fresh start"
    )


def _row(noise: Noise, replays: int) -> tuple[str, ...]:
    metric = METRICS[noise.metric]
    session = "" if noise.session_share is None else f"{noise.session_share:.2f}"
    if noise.session_share_interval is not None:
        low, high = noise.session_share_interval
        session += f" [{low:.2f}, {high:.2f}]"
    return (
        noise.metric,
        share(noise.cv, metric),
        session,
        "" if noise.autocorrelation is None else f"{noise.autocorrelation:+.2f}",
        *(share(loss, metric) for _, loss in noise.visible),
        "none: not to be gated" if noise.margin is None else share(noise.margin, metric),
        f"{noise.false_alarms} of {replays}",
    )


def _related(calibration: Calibration) -> Iterator[str]:
    names = [noise.metric for noise in calibration.noise]
    for place, row in enumerate(calibration.correlations):
        for other, value in enumerate(row[:place]):
            if value is not None and abs(value) >= RELATED:
                yield f"{names[other]} and {names[place]} move together: correlation {value:+.2f}"
