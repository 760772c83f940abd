"""Warm-up: the workload's own shape, with prompts of its own, until it stops getting faster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

STILL_WARMING = 0.05
"""A warm-up run that is faster than the one before by more than this share says that there is more to warm."""

MOST_RUNS = 10
"""Bound on the number of warm-up runs; a slow drift must not warm for ever."""


def steady(throughputs: Sequence[float]) -> bool:
    """True when the last run was not faster than the one before by more than ``STILL_WARMING``.

    One-sided on purpose: noise that makes a run slower is no sign of warming.
    """
    return len(throughputs) > 1 and throughputs[-1] <= throughputs[-2] * (1 + STILL_WARMING)


def warm_up(run_once: Callable[[], float], elapsed_s: Callable[[], float], at_most_s: float) -> bool:
    """Repeat ``run_once`` (which returns a throughput) until steady; False when a bound came first."""
    throughputs: list[float] = []
    while len(throughputs) < MOST_RUNS:
        throughputs.append(run_once())
        if steady(throughputs):
            return True
        if elapsed_s() > at_most_s:
            return False
    return False
