"""A group of GPUs over a window: their order, their names, what their counters say, and findings on them."""

from __future__ import annotations

from pytest_llmperf.model.finding import Finding, Policy, Status
from pytest_llmperf.model.reading import Reading
from pytest_llmperf.model.telemetry import GpuSeries, Telemetry


def ordered(telemetry: Telemetry) -> list[GpuSeries]:
    """By node and uuid, so that nothing depends on the order in which they were read."""
    return sorted(telemetry.gpus, key=lambda gpu: (gpu.node, gpu.uuid))


def name(gpu: GpuSeries) -> str:
    """For people: the uuid, and where it is."""
    return f"{gpu.uuid} on {gpu.node}" if gpu.node else gpu.uuid


def window_ns(telemetry: Telemetry) -> int:
    """Its length."""
    return telemetry.window_ns[1] - telemetry.window_ns[0]


def grown(gpu: GpuSeries, counter: str) -> int | None:
    """By how much a counter grew; None where it is not known, or was reset in between."""
    before: Reading[int] = getattr(gpu.before, counter)
    after: Reading[int] = getattr(gpu.after, counter)
    if before.value is None or after.value is None or after.value < before.value:
        return None
    return after.value - before.value


def judged(check: str, words: list[str], *, policy: Policy = "require", expected: str, remedy: str = "") -> Finding:
    """A finding that fails when there is something to say."""
    return finding(
        check, Status.FAIL if words else Status.PASS, "; ".join(words) or "none", policy=policy, expected=expected,
        remedy=remedy,
    )  # fmt: skip


def finding(
    check: str, status: Status, value: str, *, policy: Policy = "require", expected: str = "", remedy: str = "",
    evidence: str = "samples and counters of the measured window",
) -> Finding:  # fmt: skip
    """A finding on the window; ``during_`` tells it from the one before."""
    return Finding(
        check=f"during_{check}" if check != "telemetry" else check,
        status=status,
        policy=policy,
        value=value,
        expected=expected,
        evidence=evidence,
        remedy=remedy,
    )
