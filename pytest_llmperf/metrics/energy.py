"""Energy of a window, by the counters of its GPUs: the mean of power readings would miss what is between them."""

from __future__ import annotations

from pytest_llmperf.model.telemetry import Telemetry


def energy_j(telemetry: Telemetry) -> float | None:
    """Joules of all GPUs from just before the window to just after it; None where one of them does not say.

    The counter of a GPU that was lost or reset on the way says nothing either.
    """
    total_mj = 0
    for gpu in telemetry.gpus:
        before, after = gpu.before.energy_mj.value, gpu.after.energy_mj.value
        if before is None or after is None or after <= before:
            return None
        total_mj += after - before
    return total_mj / 1000 if telemetry.gpus else None
