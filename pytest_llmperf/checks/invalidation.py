"""Invalidation: did the GPUs stay fit while they were measured? The table of rules over one group's telemetry.

Counters of the driver miss nothing between samples and decide where there are any; samples show the rest. Lost samples
never make a run better: where what is missing could change an answer, the answer is unknown. Every raw sample is kept,
so that other thresholds can judge a run again.
"""

from __future__ import annotations

from collections.abc import Collection

from pytest_llmperf.checks import clocks, newcomers, series, slowdowns
from pytest_llmperf.checks.changed_settings import changed_settings
from pytest_llmperf.checks.gpu_health import SERIOUS_XIDS
from pytest_llmperf.checks.group import finding, grown, judged, name, ordered
from pytest_llmperf.model.finding import Finding, Policy, Status
from pytest_llmperf.model.gpu import EventReason
from pytest_llmperf.model.telemetry import Telemetry

LOST_IN_A_ROW = 2
"""So many lost samples can hide what two in a row would have shown."""


def examine(
    telemetry: Telemetry,
    *,
    own: Collection[int] = (),
    allow: Collection[str] = (),
    locked_clocks: bool = False,
    baseline_sm_clock_mhz: float | None = None,
) -> tuple[Finding, ...]:
    """Every rule, each as one finding over all GPUs; the order of the GPUs does not matter.

    Args:
        telemetry: of the window, warm-up excluded.
        own: numbers of the engine's processes.
        allow: names of programs that may use the GPUs.
        locked_clocks: whether the suite declares that clocks are limited.
        baseline_sm_clock_mhz: of the slowest GPU; None where no baseline says it.
    """
    setting_policy: Policy = "warn" if locked_clocks else "require"
    if not telemetry.gpus:
        return (finding("telemetry", Status.UNKNOWN, "no telemetry", expected="samples of every GPU"),)
    return (
        complete(telemetry),
        lost(telemetry),
        reports(telemetry),
        slowdowns.lasting(telemetry, "clock_setting", EventReason.CLOCK_SETTING, setting_policy),
        slowdowns.lasting(telemetry, "hw_slowdown", EventReason.HW_SLOWDOWN, "require"),
        slowdowns.sw_thermal(telemetry),
        slowdowns.never(telemetry, "hw_thermal", EventReason.HW_THERMAL, "hw_thermal_ns"),
        slowdowns.never(telemetry, "power_brake", EventReason.HW_POWER_BRAKE, "power_brake_ns"),
        slowdowns.noted_reasons(telemetry),
        slowdowns.power_cap(telemetry),
        clocks.straggler(telemetry),
        clocks.drift(telemetry),
        clocks.sm_clock(telemetry, baseline_sm_clock_mhz),
        errors(telemetry),
        newcomers.foreign_processes(telemetry, own, allow),
        newcomers.memory_growth(telemetry, own),
        changed_settings(telemetry),
        clocks.idle(telemetry),
    )


def complete(telemetry: Telemetry) -> Finding:
    """Whether no more samples are missing than can hide anything."""
    gone = [(gpu, series.missing(telemetry.ticks, series.reasons(gpu, telemetry.ticks))) for gpu in ordered(telemetry)]
    wrong = [(gpu, ticks) for gpu, ticks in gone if series.longest_run(ticks) >= LOST_IN_A_ROW]
    total = telemetry.ticks[1] - telemetry.ticks[0]
    if total <= 0:
        return finding("telemetry", Status.UNKNOWN, "the window is shorter than an interval", expected="samples")
    words = [
        f"{name(gpu)}: {len(ticks)} of {total} samples missing, {series.longest_run(ticks)} in a row"
        for gpu, ticks in wrong
    ]
    missing = sum(len(ticks) for _, ticks in gone)
    return finding(
        "telemetry",
        Status.UNKNOWN if wrong else Status.PASS,
        "; ".join(words) or f"{total * len(gone) - missing} of {total * len(gone)} samples",
        expected=f"fewer than {LOST_IN_A_ROW} missing in a row",
        remedy="give the sampler a core that nobody else uses",
    )


def lost(telemetry: Telemetry) -> Finding:
    """Whether every GPU answered until the end."""
    words = [f"{name(gpu)}: {gpu.lost}" for gpu in ordered(telemetry) if gpu.lost]
    return judged("gpu_lost", words, expected="every GPU answers", remedy="see the kernel log; reboot")


def reports(telemetry: Telemetry) -> Finding:
    """Error reports of the driver within the window. Those that are mostly a program's fault are noted."""
    found = sorted((name(gpu), xid.code) for gpu in telemetry.gpus for xid in gpu.xids)
    serious = any(code in SERIOUS_XIDS for _, code in found)
    words = list(dict.fromkeys(f"Xid {code} of {name}" for name, code in found))
    return judged("xid", words, policy="require" if serious or not found else "warn", expected="none",
                   remedy="look the number up in NVIDIA's Xid catalogue")  # fmt: skip


def errors(telemetry: Telemetry) -> Finding:
    """Errors of memory and links that were counted within the window."""
    words = []
    for gpu in ordered(telemetry):
        memory, links = grown(gpu, "ecc_uncorrected"), grown(gpu, "nvlink_errors")
        words += [f"{name(gpu)}: {memory} uncorrectable memory errors"] if memory else []
        words += [f"{name(gpu)}: {links} errors of NVLink"] if links else []
    return judged("errors", words, expected="none", remedy="reset the GPU; replace it when they come back")
