"""The vocabulary: which keys may stand at which place of a suite file, those of the engines' adapters included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel

from pytest_llmperf import registry
from pytest_llmperf.errors import UsageError
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.suitefile.document import KeyPath, dotted
from pytest_llmperf.suitefile.keys import (
    ArmKeys,
    FailureKeys,
    GateKeys,
    HardwareKeys,
    LoadKeys,
    MatrixKeys,
    ModelKeys,
    PreconditionKeys,
    PreconditionsKeys,
    QuarantineKeys,
    RampKeys,
    RelationKeys,
    SloKeys,
    SuiteKeys,
    TraceKeys,
    WarmupKeys,
    WorkloadKeys,
)

_SECTIONS: dict[KeyPath, type[BaseModel]] = {
    (): SuiteKeys,
    ("failed_requests",): FailureKeys,
    ("hardware",): HardwareKeys,
    ("load",): LoadKeys,
    ("matrix",): MatrixKeys,
    ("slo",): SloKeys,
    ("warmup",): WarmupKeys,
}
_PARTS: dict[str | int, type[BaseModel]] = {"ramp": RampKeys, "trace": TraceKeys}
_ENTRIES: dict[str | int, type[BaseModel]] = {"workloads": WorkloadKeys, "loads": LoadKeys, "gates": GateKeys}


def keys_of(kind: type[BaseModel]) -> set[str]:
    """The keys of a mapping as they are written."""
    return {field.alias or name for name, field in kind.model_fields.items()}


def known_keys(data: Mapping[str, Any], path: KeyPath) -> set[str]:
    """What may be written right below ``path``; nothing for a value that is no mapping."""
    match path:
        case ("gates" | "preconditions" as section,):
            return set(METRICS) if section == "gates" else keys_of(PreconditionsKeys) | _checks()
        case ("engines" | "workloads" | "loads" | "relations" as section,):
            return set(_mapping(data.get("engines" if section == "relations" else section)))
        case ("engines", str(arm)):
            return keys_of(ArmKeys) | _adapter_keys(data, [arm], "Options")
        case ("engines", str(arm), "model"):
            return keys_of(ModelKeys) | _adapter_keys(data, [arm], "Shape")
        case ("model",):
            return keys_of(ModelKeys) | _adapter_keys(data, list(_mapping(data.get("engines"))), "Shape")
    kind = _kind(data, path)
    return set() if kind is None else keys_of(kind)


def _checks() -> set[str]:
    from pytest_llmperf.checks.conditions import CONDITIONS  # noqa: PLC0415 (most suites have no use for them)

    return set(CONDITIONS)


def adapter_of(data: Mapping[str, Any], arm: str) -> Any | None:
    """The adapter of an arm's engine, which may be inherited; None where that is not known."""
    engine = _engine_of(data, arm)
    try:
        return None if engine is None else registry.load("engine", engine)
    except UsageError:
        return None


def variable_fields(data: Mapping[str, Any], arm: str) -> frozenset[str] | None:
    """The adapter's keys that may hold ``${VAR}``; None where the adapter is not known."""
    adapter = adapter_of(data, arm)
    return None if adapter is None else cast("frozenset[str]", adapter.Options.VARIABLE_FIELDS)


def locate(data: Mapping[str, Any], key: str) -> KeyPath | None:
    """The place that a dotted ``key`` names, written or only allowed; None when it makes no sense here.

    Names may hold dots, so every name that fits is tried.
    """
    return _locate(data, (), data, key)


def known_paths(data: Mapping[str, Any]) -> Iterator[str]:
    """All dotted keys that ``locate`` would find."""
    yield from (dotted(path) for path in _known_paths(data, (), data))


def _known_paths(data: Mapping[str, Any], path: KeyPath, mapping: Mapping[str, Any]) -> Iterator[KeyPath]:
    for name in known_keys(data, path) | set(mapping):
        yield (*path, name)
        yield from _known_paths(data, (*path, name), _mapping(mapping.get(name)))


def _locate(data: Mapping[str, Any], path: KeyPath, mapping: Mapping[str, Any], key: str) -> KeyPath | None:
    if len(path) == 3 and path[0] == "engines" and path[2] in {"env", "expect"}:  # noqa: PLR2004 (any name below)
        return (*path, key)
    for name in sorted(known_keys(data, path) | set(mapping)):
        if key == name:
            return (*path, name)
        if key.startswith(f"{name}."):
            found = _locate(data, (*path, name), _mapping(mapping.get(name)), key[len(name) + 1 :])
            if found is not None:
                return found
    return None


def _kind(data: Mapping[str, Any], path: KeyPath) -> type[BaseModel] | None:
    match path:
        case ("relations", str(arm)):
            return None if isinstance(_mapping(data.get("relations")).get(arm), list) else RelationKeys
        case ("relations", str(), int()):
            return RelationKeys
        case ("quarantine", int()):
            return QuarantineKeys
        case ("preconditions", str(name), *rest) if len(rest) == (name == "env"):
            return PreconditionKeys
        case (section, _) if section in _ENTRIES:
            return _ENTRIES[section]
    return _SECTIONS.get(path) or (_PARTS.get(path[-1]) if path else None)


def _adapter_keys(data: Mapping[str, Any], arms: list[str], part: str) -> set[str]:
    adapters = [adapter for arm in arms if (adapter := adapter_of(data, arm)) is not None]
    return {key for adapter in adapters for key in keys_of(getattr(adapter, part))}


def _engine_of(data: Mapping[str, Any], arm: str) -> str | None:
    arms = _mapping(data.get("engines"))
    name: Any = arm
    for _ in arms:  # an arm that extends itself must end
        entry = _mapping(arms.get(name))
        if "engine" in entry:
            return entry["engine"] if isinstance(entry["engine"], str) else None
        name = entry.get("extends")
        if not isinstance(name, str):
            return None
    return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
