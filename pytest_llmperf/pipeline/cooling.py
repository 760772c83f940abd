"""A pause before a run is made again: GPUs that were slowed down by heat get the time to cool down, within a bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_llmperf.clock import Clock
from pytest_llmperf.model.finding import Finding
from pytest_llmperf.pipeline.execute import Trial
from pytest_llmperf.telemetry.nvml.temperature import temperatures

HEAT = frozenset({"during_sw_thermal", "during_hw_thermal"})
"""Checks that fail when a GPU was slowed down by heat."""

MARGIN_C = 3
"""Above what it was before the run."""

MOST_S = 120.0
"""A GPU that is not cooler by then has a fault that no pause mends; the next run says so."""

POLL_S = 2.0


def overheated(findings: tuple[Finding, ...]) -> bool:
    """Whether a run is invalid because of heat."""
    return any(finding.invalidates and finding.check in HEAT for finding in findings)


def cool_down(
    spoilt: Trial,
    clock: Clock,
    *,
    at_most_s: float = MOST_S,
    read: Callable[[], Mapping[str, int]] = temperatures,
    show: Callable[[str], None] = lambda _: None,
) -> None:
    """After a run that heat has spoilt, wait until every GPU is at most ``MARGIN_C`` warmer than before it.

    Args:
        spoilt: the run; where it was not heat, there is no wait.
        clock: for the wait.
        at_most_s: its bound, and ``MOST_S`` is another one.
        read: how hot they are now; who does not answer is not waited for.
        show: is told what is waited for.
    """
    if not overheated(spoilt.run.findings):
        return
    before_c = spoilt.temperatures_c
    deadline_ns = clock.monotonic_ns() + round(min(at_most_s, MOST_S) * 1e9)
    while (now_c := read()) and (hot := {uuid: now_c[uuid] for uuid in before_c if _is_hot(uuid, now_c, before_c)}):
        left_s = (deadline_ns - clock.monotonic_ns()) / 1e9
        if left_s <= 0:
            return
        uuid, degrees = max(hot.items(), key=lambda pair: pair[1] - before_c[pair[0]])
        show(f"cooling down: {uuid} at {degrees} °C, {before_c[uuid]} before; {left_s:.0f} s at most")
        clock.sleep(min(POLL_S, left_s))


def _is_hot(uuid: str, now_c: Mapping[str, int], before_c: Mapping[str, int]) -> bool:
    return uuid in now_c and now_c[uuid] > before_c[uuid] + MARGIN_C
