"""Clocks within a window: is one GPU slower than the others, did they sink, are they those of the baseline?"""

from __future__ import annotations

import math
from statistics import median_high

from pytest_llmperf.checks import series
from pytest_llmperf.checks.group import finding, judged, name, ordered
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gpu import EventReason
from pytest_llmperf.model.telemetry import GpuSeries, Telemetry

STRAGGLER = 0.9
"""Of the group's SM clock."""

DRIFT = 0.95
"""The last quarter's SM clock over the first one's."""

CLOCK_TOLERANCE = 0.03
"""Share by which the SM clock may differ from the baseline's."""

IDLE_SHARE = 0.2
"""Of the samples: more of them idle with requests in flight means that the GPU waits for the host."""


def straggler(telemetry: Telemetry) -> Finding:
    """A GPU whose SM clock is below ``STRAGGLER`` of the group's: everybody waits for it.

    Each GPU's clock is its median while it worked; the group's is the upper median of these, so that of two GPUs the
    faster one counts.
    """
    bounds = [(gpu, _clock(telemetry, gpu)) for gpu in ordered(telemetry)]
    known = [(gpu, pair) for gpu, pair in bounds if not math.isnan(pair[0])]
    expected = f"every GPU at {STRAGGLER:.0%} of the group's SM clock"
    if len(known) < 2:  # noqa: PLR2004
        few = "one GPU" if len(bounds) == 1 else "fewer than two GPUs worked"
        return finding("straggler", Status.NOT_APPLICABLE, few)
    least = median_high(low for _, (low, _) in known)
    most = median_high(high for _, (_, high) in known)
    slow = [f"{name(gpu)} at {high:.0f} MHz" for gpu, (_, high) in known if high < STRAGGLER * least]
    if slow:
        value = f"{', '.join(slow)}, the group at {least:.0f}"
        remedy = "look at this GPU's cooling, power and neighbours, or choose others"
        return finding("straggler", Status.FAIL, value, expected=expected, remedy=remedy)
    if any(low < STRAGGLER * most for _, (low, _) in known):
        return finding("straggler", Status.UNKNOWN, "lost samples could hide one", expected=expected)
    return finding("straggler", Status.PASS, "none", expected=expected)


def drift(telemetry: Telemetry) -> Finding:
    """Clocks that sink while it runs: the beginning was another machine than the end. Shown, not judged."""
    first, last = series.quarters(telemetry.ticks)
    words = []
    for gpu in ordered(telemetry):
        busy, _ = series.clocks(gpu, telemetry.ticks)
        begin, end = series.part(busy, first), series.part(busy, last)
        if begin and end:
            before, after = series.median_bounds(begin, 0)[0], series.median_bounds(end, 0)[0]
            words += [f"{name(gpu)}: {before:.0f} to {after:.0f} MHz"] if after < DRIFT * before else []
    return judged("drift", words, policy="warn", expected=f"the last quarter at {DRIFT:.0%} of the first")


def sm_clock(telemetry: Telemetry, baseline_mhz: float | None) -> Finding:
    """The slowest GPU's median SM clock, which the baseline's must be close to."""
    clock = slowest_sm_clock_mhz(telemetry)
    if clock is None:
        return finding("sm_clock", Status.UNKNOWN, "not seen at work", policy="compare")
    far = baseline_mhz is not None and abs(clock - baseline_mhz) > CLOCK_TOLERANCE * baseline_mhz
    expected = "" if baseline_mhz is None else f"{baseline_mhz:.0f} MHz ± {CLOCK_TOLERANCE:.0%}, as in the baseline"
    return finding(
        "sm_clock", Status.FAIL if far else Status.PASS, f"{clock:.0f} MHz", policy="compare", expected=expected
    )


def slowest_sm_clock_mhz(telemetry: Telemetry) -> float | None:
    """The smallest of the GPUs' median SM clocks at work: what a baseline keeps."""
    medians = []
    for gpu in telemetry.gpus:
        busy, _ = series.clocks(gpu, telemetry.ticks)
        medians += [series.median_bounds(list(busy.values()), 0)[0]] if busy else []
    return min(medians, default=None)


def idle(telemetry: Telemetry) -> Finding:
    """GPUs that were often idle while requests were in flight waited for the host."""
    words = []
    for gpu in ordered(telemetry):
        known = series.reasons(gpu, telemetry.ticks)
        share = sum(bool(bits & EventReason.IDLE) for bits in known.values()) / len(known) if known else 0.0
        words += [f"{name(gpu)} idle in {share:.0%} of the samples"] if share > IDLE_SHARE else []
    return judged("host_bound", words, policy="warn", expected=f"idle in at most {IDLE_SHARE:.0%}")


def _clock(telemetry: Telemetry, gpu: GpuSeries) -> series.Bounds:
    busy, gone = series.clocks(gpu, telemetry.ticks)
    return series.median_bounds(list(busy.values()), len(gone))
