"""Slowdowns within a window: which reasons for lower clocks were there, for how long, and what each means."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_llmperf.checks import series
from pytest_llmperf.checks.gpu_health import reasons_in_words
from pytest_llmperf.checks.group import finding, grown, judged, name, ordered, window_ns
from pytest_llmperf.model.finding import Finding, Policy, Status
from pytest_llmperf.model.gpu import EventReason
from pytest_llmperf.model.telemetry import GpuSeries, Telemetry

SW_THERMAL_SHARE = 0.01
"""Of the window, under software thermal slowdown by the counter."""

_QUIET = EventReason.IDLE | EventReason.SW_POWER_CAP | EventReason.DISPLAY
_RULED = (
    EventReason.CLOCK_SETTING | EventReason.HW_SLOWDOWN | EventReason.SW_THERMAL | EventReason.HW_THERMAL
    | EventReason.HW_POWER_BRAKE
)  # fmt: skip

_COOL = "let it cool down and look at airflow; rather measure on another machine than again on this one"


def lasting(telemetry: Telemetry, check: str, reason: EventReason, policy: Policy) -> Finding:
    """A state that must not last: two samples in a row. One alone can be a change of clocks, and is noted."""
    looks = [(gpu, _lasting(telemetry, gpu, reason)) for gpu in ordered(telemetry)]
    return _worst(telemetry, check, looks, policy, expected="never in two samples in a row")


def _lasting(telemetry: Telemetry, gpu: GpuSeries, reason: EventReason) -> Status | None:
    """FAIL when seen twice in a row, UNKNOWN when lost samples could be such, None for one alone, else PASS."""
    known = series.reasons(gpu, telemetry.ticks)
    bad = {tick for tick, bits in known.items() if bits & reason}
    if series.longest_run(bad) > 1:
        return Status.FAIL
    gone = set(series.missing(telemetry.ticks, known))
    if any(len(run) > 1 and bad & set(run) for run in series.runs(bad | gone)):
        return Status.UNKNOWN
    return None if bad else Status.PASS


def sw_thermal(telemetry: Telemetry) -> Finding:
    """Slowed down by heat: more than ``SW_THERMAL_SHARE`` of the window by the counter, or two samples in a row."""
    window = window_ns(telemetry)

    def look(gpu: GpuSeries) -> Status | None:
        counted = grown(gpu, "sw_thermal_ns")
        if counted is not None and counted > SW_THERMAL_SHARE * window:
            return Status.FAIL
        seen = _lasting(telemetry, gpu, EventReason.SW_THERMAL)
        if counted is None or seen is Status.FAIL:
            return seen
        # two samples in a row are an interval at least: a counter that grew by less rules it out
        hidden = seen is Status.UNKNOWN and counted >= telemetry.interval_ns
        noted = counted or seen is not Status.PASS
        return Status.UNKNOWN if hidden else None if noted else Status.PASS

    looks = [(gpu, look(gpu)) for gpu in ordered(telemetry)]
    return _worst(
        telemetry, "sw_thermal", looks, "require", expected=f"at most {SW_THERMAL_SHARE:.0%} of the window",
        counter="sw_thermal_ns",
    )  # fmt: skip


def never(telemetry: Telemetry, check: str, reason: EventReason, counter: str) -> Finding:
    """What must not happen at all. Without the counter, a single lost sample could have shown it."""

    def look(gpu: GpuSeries) -> Status | None:
        counted, known = grown(gpu, counter), series.reasons(gpu, telemetry.ticks)
        if counted or any(bits & reason for bits in known.values()):
            return Status.FAIL
        hidden = counted is None and bool(series.missing(telemetry.ticks, known))
        return Status.UNKNOWN if hidden else Status.PASS

    looks = [(gpu, look(gpu)) for gpu in ordered(telemetry)]
    return _worst(telemetry, check, looks, "require", expected="never", counter=counter)


def noted_reasons(telemetry: Telemetry) -> Finding:
    """Reasons without a rule: shown, with those that nobody knows yet in hex."""
    words = []
    for gpu in ordered(telemetry):
        bits = 0
        for each in series.reasons(gpu, telemetry.ticks).values():
            bits |= each
        if rest := bits & ~int(_RULED | _QUIET):
            words.append(f"{name(gpu)}: {reasons_in_words(rest)}")
    return judged("clock_reasons", words, policy="warn", expected="none beside the usual ones")


def power_cap(telemetry: Telemetry) -> Finding:
    """How long the software power cap held clocks down: usual at load, so it is recorded, and clocks are compared."""
    window = window_ns(telemetry)
    words = []
    for gpu in ordered(telemetry):
        counted, known = grown(gpu, "power_cap_ns"), series.reasons(gpu, telemetry.ticks)
        capped = sum(bool(bits & EventReason.SW_POWER_CAP) for bits in known.values())
        share = counted / window if counted is not None and window else capped / len(known) if known else math.nan
        words.append(f"{name(gpu)} {share:.0%}")
    return finding("power_cap", Status.PASS, f"of the window: {', '.join(words)}", policy="record")


def _worst(
    telemetry: Telemetry,
    check: str,
    looks: Sequence[tuple[GpuSeries, Status | None]],
    policy: Policy,
    *,
    expected: str,
    counter: str = "",
) -> Finding:
    """One finding of a look at each GPU: FAIL, UNKNOWN, None for a note, PASS."""
    for status, said in ((Status.FAIL, policy), (Status.UNKNOWN, policy), (None, "warn")):
        found = [gpu for gpu, seen in looks if seen is status]
        if found:
            words = [f"{name(gpu)}{_measured(telemetry, gpu, counter)}" for gpu in found]
            return finding(
                check,
                status or Status.FAIL,
                ("lost samples could hide it: " if status is Status.UNKNOWN else "") + "; ".join(words),
                policy="warn" if said == "warn" else policy,
                expected=expected,
                remedy=_COOL if status is Status.FAIL else "",
                evidence=found[0].after.source,
            )
    return finding(check, Status.PASS, "never", policy=policy, expected=expected)


def _measured(telemetry: Telemetry, gpu: GpuSeries, counter: str) -> str:
    """How long, by the counter, and how hot it got."""
    counted, window = grown(gpu, counter) if counter else None, window_ns(telemetry)
    words = [f"{counted / window:.1%} of the window"] if counted and window else []
    hot = [sample.temperature_c for sample in gpu.samples if sample.temperature_c is not None]
    words += [f"up to {max(hot)} °C"] if hot else []
    return f" ({', '.join(words)})" if words else ""
