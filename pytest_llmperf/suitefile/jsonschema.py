"""The JSON Schema of suite files, for editors: completion, hover texts and red lines while one types.

It is looser than ``load_suite``: names, references and margins are checked there.
"""

from __future__ import annotations

from typing import Any, get_args

from pytest_llmperf import registry
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.finding import Policy
from pytest_llmperf.suitefile.keys import SuiteKeys
from pytest_llmperf.suitefile.values import NAME

_TITLE = "pytest-llmperf suite file (*.llmperf.yaml)"
_SHORT_FORMS: dict[str, dict[str, Any]] = {
    "load": {"const": "burst"},
    "hardware": {"const": "any"},
    "telemetry": {"const": "off"},
}

_NEEDED = {"RelationKeys": ["metric", "vs"], "QuarantineKeys": ["cases", "owner", "why", "until"]}


def json_schema() -> dict[str, Any]:
    """The schema as JSON values, with the keys of the built-in adapters."""
    from pytest_llmperf.checks.conditions import CONDITIONS  # noqa: PLC0415 (no suite is collected with the schema)

    schema = _plain(SuiteKeys.model_json_schema(by_alias=True))
    kinds = schema["$defs"]
    for name, short in _SHORT_FORMS.items():
        _also(schema["properties"], name, short)
    gate = kinds["GateKeys"]
    entry = {"anyOf": [gate["properties"]["margin"], {"$ref": "#/$defs/GateKeys"}]}
    schema["properties"]["gates"] |= {
        "properties": {name: {**entry, "description": f"{metric.formula} [{metric.unit}]"}
                       for name, metric in METRICS.items()},
        "additionalProperties": False,
    }  # fmt: skip
    expected = kinds["PreconditionsKeys"]
    kinds["Precondition"] = {"anyOf": [{"enum": list(get_args(Policy))}, {"$ref": "#/$defs/PreconditionKeys"}]}
    check = {"$ref": "#/$defs/Precondition"}
    expected["properties"] |= dict.fromkeys(CONDITIONS, check)
    expected["properties"]["env"]["additionalProperties"] = check
    expected["additionalProperties"] = False
    several = schema["properties"]["relations"]["additionalProperties"]
    schema["properties"]["relations"]["additionalProperties"] = {"anyOf": [several["items"], several]}
    for name, needed in _NEEDED.items():
        kinds[name]["required"] = needed
    for section in ("engines", "workloads", "loads"):
        schema["properties"][section]["propertyNames"] = {"pattern": NAME}
    _add_adapters(kinds)
    schema["required"] = ["suite", "model", "engines", "workloads", "gates"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": _TITLE}


def _add_adapters(kinds: dict[str, Any]) -> None:
    """Keys of adapters: offered for every arm, and the only ones where the engine is not a third party's."""
    arm, model = kinds["ArmKeys"], kinds["ModelKeys"]
    ours = list(registry.BUILTIN["engine"])
    for engine in ours:
        adapter = registry.load("engine", engine)
        for target, kind in ((arm, adapter.Options), (model, adapter.Shape)):
            own = _plain(kind.model_json_schema())
            kinds |= own.pop("$defs", {})
            target["properties"] |= {**own["properties"], **target["properties"]}
    arm["if"] = {"properties": {"engine": {"enum": ours}}}
    arm["then"] = {"propertyNames": {"enum": sorted(arm["properties"])}}
    arm["properties"]["engine"]["examples"] = ours
    del arm["additionalProperties"], model["additionalProperties"]


def _also(properties: dict[str, Any], name: str, short: dict[str, Any]) -> None:
    section = properties[name]
    long = {key: section.pop(key) for key in ("$ref", "anyOf") if key in section}
    section["anyOf"] = [short, *long.get("anyOf", [long])]


def _plain(value: Any) -> Any:
    """Without what only Python needs: titles, null defaults and the null that stands for "not written"."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _plain(inner) for key, inner in value.items() if not _is_noise(key, inner)}
    choices = [choice for choice in plain.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        del plain["anyOf"]
        return {**choices[0], **plain}
    if choices:
        plain["anyOf"] = choices
    return plain


def _is_noise(key: str, value: Any) -> bool:
    return (key == "title" and isinstance(value, str)) or (key == "default" and value is None)
