"""Arms: inherited, checked by their engine's adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_llmperf import registry
from pytest_llmperf.errors import Mistake, UsageError
from pytest_llmperf.model.expectation import as_text
from pytest_llmperf.model.suite import Arm, Model
from pytest_llmperf.registry import did_you_mean
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.keys import ArmKeys, Keys, ModelKeys, SuiteKeys
from pytest_llmperf.suitefile.lineage import lineages
from pytest_llmperf.suitefile.merged import Merged
from pytest_llmperf.suitefile.structure import check
from pytest_llmperf.suitefile.vocabulary import keys_of
from pytest_llmperf.suitefile.workloads import Workloads

_COMMON = keys_of(ArmKeys)
_MODEL = keys_of(ModelKeys)


@dataclass
class Arms:
    """The arms of a suite.

    Attributes:
        arms: by name; those with mistakes may be missing.
        unset: by name, the variables that an arm needs and this machine has not; such an arm is not whole.
    """

    arms: dict[str, Arm] = field(default_factory=dict)
    unset: dict[str, tuple[Mistake, ...]] = field(default_factory=dict)


def resolve_arms(draft: Draft, keys: SuiteKeys, workloads: Workloads) -> Arms:
    """Every arm with all it inherits."""
    entries = keys.engines or {}
    if not entries and not draft.names("engines") and not draft.is_excused(("engines",)):
        draft.report(("engines",), "a suite needs 'engines' with at least one arm")
    for name in entries:
        _check_variant(draft, name, entries)
    found = Arms()
    for name, chain in lineages(draft, "engines", entries).items():
        written = [(ancestor, entries[ancestor]) for ancestor in chain]
        merged, model = _merged(keys, written)
        arm = _arm(draft, written, merged, model, workloads)
        if arm is not None:
            found.arms[name] = arm
        missing = [path for path in draft.unset if merged.needs(path) or model.needs(path)]
        if missing:
            found.unset[name] = tuple(mistake for path in missing for mistake in draft.unset[path])
    _check_twins(draft, found.arms)
    return found


def _merged(keys: SuiteKeys, chain: Sequence[tuple[str, ArmKeys]]) -> tuple[Merged, Merged]:
    """The keys of an arm and of its model, with all that is inherited."""
    merged, model = Merged(of_arm=True), Merged(of_arm=False)
    if keys.model is not None:
        model.add(("model",), _written(keys.model))
    for ancestor, entry in chain:
        home = ("engines", ancestor)
        merged.add(home, _written(entry))
        if entry.model is not None:
            model.add((*home, "model"), _written(entry.model))
    return merged, model


def _arm(
    draft: Draft, chain: Sequence[tuple[str, ArmKeys]], merged: Merged, model: Merged, workloads: Workloads
) -> Arm | None:
    name, own = chain[-1]
    adapter = _adapter(draft, merged, name, root=len(chain) == 1)
    if adapter is not None:
        check(draft, adapter.Options, merged, _COMMON, name)
        check(draft, adapter.Shape, model, _MODEL, name)
    if "id" not in model.values and not any(draft.is_excused((*home, "id")) for home in [("model",), *model.homes]):
        draft.report(("model",), "a suite needs 'model' with an id, such as model: {id: Qwen/Qwen3-0.6B}")
    only = merged.values.get("only", [])
    selected = workloads.select(draft, merged.origins.get("only", ()), only)
    if adapter is None or "id" not in model.values or (only and not selected):
        return None
    common: dict[str, Any] = {key: merged.values[key] for key in ("engine", "env") if key in merged.values}
    if "expect" in merged.values:
        common["expect"] = {key: as_text(value) for key, value in merged.values["expect"].items()}
    if "start_timeout" in merged.values:
        common["start_timeout_s"] = merged.values["start_timeout"]
    return Arm(
        name=name,
        model=Model(
            **{key: model.values[key] for key in ("id", "path", "weights") if key in model.values},
            shape=model.without(_MODEL),
        ),
        options=merged.without(_COMMON),
        args=tuple(merged.values.get("args", ())),
        variant_of=own.variant_of,
        default=own.default is not False,
        only=selected,
        **common,
    )


def _written(keys: Keys) -> dict[str, Any]:
    """The keys that are written, as they are written; those of an adapter included."""
    given = keys.model_fields_set
    fields = {spec.alias or key: getattr(keys, key) for key, spec in type(keys).model_fields.items() if key in given}
    return {**fields, **(keys.model_extra or {})}


def _adapter(draft: Draft, merged: Merged, name: str, *, root: bool) -> Any | None:
    if "engine" not in merged.values:
        if root and not draft.is_excused(("engines", name, "engine")):
            draft.report(("engines", name), f"needs 'engine', one of {', '.join(registry.names('engine'))}")
        return None
    try:
        return registry.load("engine", merged.values["engine"])
    except UsageError as error:
        draft.report(merged.origins["engine"], str(error))
        return None


def _check_variant(draft: Draft, name: str, entries: Mapping[str, ArmKeys]) -> None:
    target = entries[name].variant_of
    path = ("engines", name, "variant_of")
    if target is None:
        return
    others = [arm for arm in draft.names("engines") if arm != name]
    if target not in others:
        draft.report(path, f"{target!r} is no other arm{did_you_mean(target, others)}")
    elif target in entries and entries[target].variant_of is not None:
        draft.report(path, f"{target!r} is itself a variant, of {entries[target].variant_of!r}; name that one")


def _check_twins(draft: Draft, arms: Mapping[str, Arm]) -> None:
    """Two arms that run by default under the same case ids."""
    first: dict[str, str] = {arm.name: arm.name for arm in arms.values() if arm.default and arm.variant_of is None}
    for arm in arms.values():
        if arm.default and arm.variant_of is not None and first.setdefault(arm.variant_of, arm.name) != arm.name:
            other = first[arm.variant_of]
            draft.report(("engines", arm.name, "variant_of"), f"would run beside {other!r} under the same case ids; "
                         "write default: false")  # fmt: skip
