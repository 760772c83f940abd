"""Samples over a window by their ticks: what was seen, what is missing, and what the missing ones could hide."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from statistics import median_high, median_low

from pytest_llmperf.model.gpu import EventReason
from pytest_llmperf.model.telemetry import GpuSeries, Sample

Bounds = tuple[float, float]


def missing(ticks: tuple[int, int], seen: Collection[int]) -> list[int]:
    """Ticks of the window that are not among those seen."""
    return [tick for tick in range(*ticks) if tick not in seen]


def longest_run(ticks: Collection[int]) -> int:
    """The most of them that follow each other."""
    longest = length = 0
    before: int | None = None
    for tick in sorted(ticks):
        length = length + 1 if before is not None and tick == before + 1 else 1
        longest, before = max(longest, length), tick
    return longest


def runs(ticks: Collection[int]) -> list[list[int]]:
    """Groups of those that follow each other."""
    groups: list[list[int]] = []
    for tick in sorted(ticks):
        if groups and tick == groups[-1][-1] + 1:
            groups[-1].append(tick)
        else:
            groups.append([tick])
    return groups


def reasons(series: GpuSeries, ticks: tuple[int, int]) -> dict[int, int]:
    """Event reasons by tick, of the samples that know them."""
    return {sample.tick: sample.event_reasons for sample in _within(series, ticks) if sample.event_reasons is not None}


def clocks(series: GpuSeries, ticks: tuple[int, int]) -> tuple[dict[int, int], list[int]]:
    """SM clocks by tick while the GPU worked, and the ticks of which nobody knows."""
    known = {sample.tick: sample for sample in _within(series, ticks) if sample.sm_clock_mhz is not None}
    busy = {tick: sample.sm_clock_mhz or 0 for tick, sample in known.items() if not _idle(sample)}
    return busy, missing(ticks, known)


def median_bounds(values: Collection[float], unseen: int) -> Bounds:
    """The median of the values, had the unseen ones all been as low, or as high, as can be; equal without any.

    Not a number without values and without unseen ones.
    """
    if not values and not unseen:
        return math.nan, math.nan
    if not unseen:
        return median_low(values), median_low(values)
    return median_low([*values, *[-math.inf] * unseen]), median_high([*values, *[math.inf] * unseen])


def quarters(ticks: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The first and the last quarter of the window."""
    first, end = ticks
    quarter = max((end - first) // 4, 1)
    return (first, first + quarter), (end - quarter, end)


def part(values: Mapping[int, int], ticks: tuple[int, int]) -> list[float]:
    """Of values by tick, those within."""
    return [value for tick, value in values.items() if ticks[0] <= tick < ticks[1]]


def _within(series: GpuSeries, ticks: tuple[int, int]) -> list[Sample]:
    return [sample for sample in series.samples if ticks[0] <= sample.tick < ticks[1]]


def _idle(sample: Sample) -> bool:
    return bool((sample.event_reasons or 0) & EventReason.IDLE)
