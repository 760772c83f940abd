"""Workloads: inherited, multiplied by the matrix, each with its loads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod
from typing import Any

from pytest_llmperf.model.suite import DataFile, Load, Rules, Workload
from pytest_llmperf.registry import did_you_mean
from pytest_llmperf.suitefile.document import KeyPath
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.keys import MatrixKeys, SuiteKeys, WorkloadKeys
from pytest_llmperf.suitefile.kinds import DEFAULT, TEXTS_BY_TOKENIZER, report_lacking, report_unfit
from pytest_llmperf.suitefile.lineage import lineages
from pytest_llmperf.suitefile.loads import LOAD_KEYS, SharedLoads, own_load, shared_loads, value_name

_NEWEST_RULES: Rules = "vllm-0.32.0"
_AXES = ("input_tokens", "output_tokens", "requests")
"""The order of a matrix's values in names, whatever the order in the file."""

MOST_CELLS = 10_000
"""A matrix multiplies quietly; nobody means to measure more cases than this in one suite."""


@dataclass
class Workloads:
    """All workloads of a suite.

    Attributes:
        workloads: by name, after the matrix.
        loads: what each of them runs under.
        families: by name, as written or after the matrix, the names after the matrix that it stands for.
    """

    workloads: dict[str, Workload] = field(default_factory=dict)
    loads: dict[str, tuple[Load, ...]] = field(default_factory=dict)
    families: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def select(self, draft: Draft, path: KeyPath, names: Sequence[str]) -> tuple[str, ...]:
        """The workloads that ``only`` at ``path`` names, after the matrix; unknown names are reported."""
        known = {*self.families, *draft.names("workloads")}
        for place, name in enumerate(names):
            if name not in known and not draft.is_excused(("workloads",)):
                draft.report((*path, place), f"unknown workload {name!r}{did_you_mean(name, known)}")
        return tuple(dict.fromkeys(full for name in names for full in self.families.get(name, ())))


def resolve_workloads(draft: Draft, keys: SuiteKeys) -> Workloads:
    """Every workload with all it inherits, once per combination of the matrix."""
    entries = keys.workloads or {}
    if not entries and not draft.names("workloads") and not draft.is_excused(("workloads",)):
        draft.report(("workloads",), "a suite needs 'workloads' with at least one entry")
    _check_matrix(draft, keys.matrix)
    shared = shared_loads(draft, keys)
    own = {name: own_load(draft, ("workloads", name), entry) for name, entry in entries.items()}
    result = Workloads()
    lacking: dict[str, set[str]] = {}
    for name, chain in lineages(draft, "workloads", entries).items():
        values = _inherited([entries[ancestor] for ancestor in chain])
        load = next((own[ancestor] for ancestor in reversed(chain) if own[ancestor] is not None), None)
        loads = shared.loads if load is None else (load,)
        lacking[name] = _report_kind(draft, chain, values, keys, lacking)
        if not loads and not _is_load_excused(draft, chain, shared):
            draft.report(("workloads", name), "needs a load: write load: burst or load: {concurrency: 4} at the top, "
                         "or concurrency, request_rate or burst here")  # fmt: skip
        full_names = []
        if not lacking[name]:
            for workload in _multiplied(name, values, keys.matrix):
                full_names.append(workload.name)
                result.workloads[workload.name] = workload
                result.loads[workload.name] = loads
        result.families |= {full_name: (full_name,) for full_name in full_names}
        result.families[name] = tuple(full_names)
    _report_unused(draft, shared, result)
    return result


def _inherited(chain: Sequence[WorkloadKeys]) -> dict[str, Any]:
    merged: dict[str, Any] = {"kind": DEFAULT}
    for entry in chain:
        merged |= {key: getattr(entry, key) for key in entry.model_fields_set - LOAD_KEYS - {"extends"}}
    return merged


def _multiplied(name: str, values: Mapping[str, Any], matrix: MatrixKeys | None) -> Iterator[Workload]:
    axes = _axes(matrix)
    for combination in islice(product(*axes.values()), MOST_CELLS):
        cell = dict(zip(axes, combination, strict=True))
        suffix = "".join(f"-{axis}-{value_name(value)}" for axis, value in cell.items())
        yield Workload(name=name + suffix, **_resolved({**values, **cell}))


def _resolved(values: dict[str, Any]) -> dict[str, Any]:
    """With the data file as one value, and with the rules that hold where none are written."""
    if "path" in values:
        values["data"] = DataFile(path=values.pop("path"), sha256=values.pop("sha256", None))
    return {"rules": _NEWEST_RULES, **values} if values["kind"] in TEXTS_BY_TOKENIZER else values


def _axes(matrix: MatrixKeys | None) -> dict[str, list[int]]:
    return {} if matrix is None else {axis: values for axis in _AXES if (values := getattr(matrix, axis)) is not None}


def _check_matrix(draft: Draft, matrix: MatrixKeys | None) -> None:
    if matrix is None:
        return
    if not matrix.model_fields_set and not draft.is_wrong(("matrix",)):
        draft.report(("matrix",), "must hold at least one list of values")
    cells = prod(len(getattr(matrix, axis)) for axis in matrix.model_fields_set)
    if cells > MOST_CELLS:
        draft.report(("matrix",), f"makes {cells} of every workload; {MOST_CELLS} is the most")
    for axis in matrix.model_fields_set:
        seen: set[str] = set()
        for place, value in enumerate(getattr(matrix, axis)):
            if value_name(value) in seen:
                draft.report(("matrix", axis, place), f"{value_name(value)} is listed twice; remove one")
            seen.add(value_name(value))


def _report_kind(
    draft: Draft, chain: list[str], values: Mapping[str, Any], keys: SuiteKeys, before: Mapping[str, set[str]]
) -> set[str]:
    """The keys that a workload of its kind lacks; what does not go with the kind is reported too."""
    if any(draft.is_excused(("workloads", ancestor, "kind")) for ancestor in chain):
        return {"kind"}
    entries, name, axes = keys.workloads or {}, chain[-1], set(_axes(keys.matrix))
    report_unfit(draft, name, values, set(entries[name].model_fields_set), axes)
    return report_lacking(draft, chain, values, axes, before)


def _is_load_excused(draft: Draft, chain: list[str], shared: SharedLoads) -> bool:
    suite_wide: list[KeyPath] = [("load",), ("loads",), *(("matrix", key) for key in LOAD_KEYS)]
    inline: list[KeyPath] = [("workloads", ancestor, key) for ancestor in chain for key in LOAD_KEYS]
    return shared.source is not None or any(draft.is_wrong(p) or draft.is_excused(p) for p in [*suite_wide, *inline])


def _report_unused(draft: Draft, shared: SharedLoads, result: Workloads) -> None:
    if shared.source is None or not shared.named or not result.loads or draft.is_wrong(("workloads",)):
        return
    if all(loads is not shared.loads for loads in result.loads.values()):
        draft.report(shared.source, "changes nothing: every workload has a load of its own; remove theirs or this")
