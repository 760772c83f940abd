"""How hot the GPUs are now: the short question, between two runs."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_llmperf.model.reading import Reading
from pytest_llmperf.telemetry.nvml.session import Session, session


def temperatures() -> Mapping[str, int]:
    """Degrees Celsius by uuid, of the GPUs that answer."""
    with session() as nvml:
        if isinstance(nvml, Reading):
            return {}
        count = nvml.ask("nvmlDeviceGetCount", change=int).value or 0
        found = (_temperature(nvml, index) for index in range(count))
        return dict(pair for pair in found if pair is not None)


def _temperature(nvml: Session, index: int) -> tuple[str, int] | None:
    handle: Reading[object] = nvml.ask("nvmlDeviceGetHandleByIndex", index)
    if not handle.known:
        return None
    uuid = nvml.ask("nvmlDeviceGetUUID", handle.value, change=str).value
    degrees = nvml.first(
        lambda: nvml.ask("nvmlDeviceGetTemperatureV", handle.value, 0, change=int),
        lambda: nvml.ask("nvmlDeviceGetTemperature", handle.value, 0, change=int),
    ).value
    return None if uuid is None or degrees is None else (uuid, degrees)
