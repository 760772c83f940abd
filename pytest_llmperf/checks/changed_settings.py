"""Settings of GPUs before and after a window: what somebody changed while we measured."""

from __future__ import annotations

from typing import Any

from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gpu import Fabric, Gpu, Mode, PowerProfiles, RemappedRows, Vboost
from pytest_llmperf.model.reading import Reading
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.model.telemetry import Telemetry

SETTINGS = {
    "persistence": "persistence mode",
    "power_limit_enforced_mw": "power limit",
    "application_clocks_mhz": "application clocks",
    "power_profiles": "power profile",
    "power_smoothing": "power smoothing",
    "vboost": "vboost",
    "ecc": "ECC",
    "mig": "MIG",
    "compute_mode": "compute mode",
    "fabric": "fabric",
    "remapped_rows": "row remapping",
}


def changed_settings(telemetry: Telemetry) -> Finding:
    """Whether every setting is what it was. One that could be read before and cannot now is unknown."""
    words: list[str] = []
    unread: list[str] = []
    before = {gpu.uuid: gpu for gpu in _gpus(telemetry.before)}
    after = {gpu.uuid: gpu for gpu in _gpus(telemetry.after)}
    for uuid in sorted(before):
        if uuid not in after:
            unread.append(f"{uuid} is not there")
            continue
        words += [f"{uuid}: {line}" for line in _changes(before[uuid], after[uuid])]
        unread += [f"{uuid}: {line}" for line in _unread(before[uuid], after[uuid])]
    if not before:
        status, value = Status.NOT_APPLICABLE, "not read before and after"
    elif words:
        status, value = Status.FAIL, "; ".join(words)
    elif unread:
        status, value = Status.UNKNOWN, f"not known afterwards: {'; '.join(unread)}"
    else:
        status, value = Status.PASS, "none"
    return Finding(
        check="during_changed_settings",
        status=status,
        policy="require",
        value=value,
        expected="none",
        evidence="the machine before the window and after it",
        remedy="find out who changes settings here: a job's prologue, an agent of the cluster",
    )


def _gpus(snapshot: Snapshot | None) -> tuple[Gpu, ...]:
    return () if snapshot is None else snapshot.gpus


def _changes(before: Gpu, after: Gpu) -> list[str]:
    lines = []
    for name, what in SETTINGS.items():
        old, new = _pair(name, before, after)
        if old is not None and new is not None and old != new:
            lines.append(f"{what} {_shown(old)} to {_shown(new)}")
    return lines


def _unread(before: Gpu, after: Gpu) -> list[str]:
    pairs = {what: _pair(name, before, after) for name, what in SETTINGS.items()}
    return [what for what, (old, new) in pairs.items() if old is not None and new is None]


def _pair(name: str, before: Gpu, after: Gpu) -> tuple[Any, Any]:
    """Both values; of row remapping only whether one is pending or failed, since counts grow in health."""
    readings: tuple[Reading[Any], Reading[Any]] = getattr(before, name), getattr(after, name)
    old, new = (reading.value for reading in readings)
    return _comparable(old), _comparable(new)


def _comparable(value: Any) -> Any:
    return (value.pending, value.failed) if isinstance(value, RemappedRows) else value


def _shown(value: Any) -> str:
    if isinstance(value, Mode):
        return f"{'on' if value.current else 'off'} (pending {'on' if value.pending else 'off'})"
    if isinstance(value, Vboost):
        return str(value.current)
    if isinstance(value, Fabric):
        return f"state {value.state}, status {value.status}, health {value.health_summary}"
    if isinstance(value, PowerProfiles):
        return ", ".join(map(str, value.enforced)) or "none"
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
