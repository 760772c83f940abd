"""Gates: a metric of the table, a margin on its scale, a reference, and where it holds."""

from __future__ import annotations

from typing import Literal

from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.injection import MOST as MOST_INJECTED
from pytest_llmperf.model.metric import Metric
from pytest_llmperf.model.slo import GOODPUT
from pytest_llmperf.registry import did_you_mean
from pytest_llmperf.suitefile.document import KeyPath
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.keys import GateKeys, SuiteKeys
from pytest_llmperf.suitefile.quantity import Quantity
from pytest_llmperf.suitefile.workloads import Workloads

MOST_SHARE = 0.9
"""Of a margin that is a share, or of a metric that is one: a throughput that falls to a tenth is no throughput."""
MOST_LENGTH = MOST_INJECTED / 2
"""Of a margin in tokens per step: twice the margin is what a proof that the gate can fail has to take away."""
MOST_CV = 0.5
"""Of a declared variation, as a share or in the unit: through more noise than that no loss shows."""


def resolve_gates(draft: Draft, keys: SuiteKeys, workloads: Workloads) -> tuple[Gate, ...]:
    """All gates in the order of the file."""
    entries = keys.gates or {}
    if not entries and not draft.names("gates") and not draft.is_excused(("gates",)):
        draft.report(("gates",), "a suite needs 'gates' with at least one metric")
    gates = []
    for name, entry in entries.items():
        metric = known_metric(draft, ("gates", name), name, keys)
        if metric is not None:
            gates.append(_gate(draft, metric, entry, keys, workloads))
    return tuple(gates)


def known_metric(draft: Draft, path: KeyPath, name: str, keys: SuiteKeys) -> Metric | None:
    """The metric that is named at ``path``; an unknown one is reported, and goodput without limits is."""
    metric = METRICS.get(name)
    if metric is None:
        draft.report(path, f"unknown metric{did_you_mean(name, METRICS)}")
    elif name in GOODPUT and keys.slo is None and not draft.is_excused(("slo",)):
        draft.report(path, "needs limits at the top of the suite, such as slo: {ttft: 500ms, tpot: 50ms}")
    return metric


def margin_of(draft: Draft, path: KeyPath, metric: Metric, written: Quantity | Literal["auto"] | None) -> float:
    """The margin on the metric's scale; the metric's own where none is written, and for ``auto``."""
    if written is None or written == "auto":
        return metric.margin
    most = MOST_LENGTH if metric.unit and metric.scale == "absolute" else MOST_SHARE
    value = _on_scale(draft, path, metric, written, most, "hardly any loss is larger, so the gate could not fail")
    if value == 0:
        draft.report(path, f"{written} must be more than nothing: no measurement can show a loss of zero")
    return value


def check_reference(draft: Draft, path: KeyPath, name: str, keys: SuiteKeys) -> None:
    """Report a ``name`` that is no arm to compare with."""
    arms = keys.engines or {}
    if name not in draft.names("engines"):
        if not draft.is_excused(("engines",)):
            draft.report(path, f"unknown arm {name!r}{did_you_mean(name, arms)}")
    elif name in arms and arms[name].variant_of is not None:
        draft.report(
            path, f"{name!r} is a variant; compare with an arm that is none, such as {arms[name].variant_of!r}"
        )


def _gate(draft: Draft, metric: Metric, entry: GateKeys, keys: SuiteKeys, workloads: Workloads) -> Gate:
    path: KeyPath = ("gates", metric.name)
    margin = margin_of(draft, (*path, "margin"), metric, entry.margin)
    cv = None if entry.cv is None else _cv(draft, (*path, "cv"), metric, entry.cv)
    if entry.margin == "auto":
        _check_auto(draft, path, metric, entry)
    if entry.reference is not None:
        check_reference(draft, (*path, "reference"), entry.reference, keys)
    arms = [name for name in entry.only or () if name in draft.names("engines")]
    _check_only(draft, (*path, "only"), entry.only or [], workloads)
    others = [name for name in entry.only or () if name not in arms]
    return Gate(
        metric=metric,
        margin=margin,
        reference=entry.reference,
        auto=entry.margin == "auto",
        cv=cv,
        line=draft.line(path),
        only_arms=tuple(arms),
        only_workloads=tuple(dict.fromkeys(full for name in others for full in workloads.families.get(name, ()))),
    )


def _cv(draft: Draft, path: KeyPath, metric: Metric, written: Quantity) -> float:
    value = _on_scale(
        draft, path, metric, written, MOST_CV, "no loss shows through more noise, so the gate could not fail"
    )
    if value == 0 and metric.timing:
        draft.report(path, f"0 declares an exact count, and {metric.name} is a time; leave cv out, or say 1%")
    return value


def _check_auto(draft: Draft, path: KeyPath, metric: Metric, entry: GateKeys) -> None:
    place = (*path, "margin")
    if entry.reference is not None:
        draft.report(place, f"auto goes by the calibration in the stored baseline, and reference: {entry.reference} "
                     f"compares with none; write a margin, such as {example_margin(metric)}")  # fmt: skip
    elif entry.cv is not None and entry.cv.value == 0:
        draft.report(place, "auto goes by the noise that calibration found, and cv: 0 declares that there is none; "
                     f"write a margin, such as {example_margin(metric)}")  # fmt: skip


def example_margin(metric: Metric) -> str:
    """The metric's own margin as it would be written."""
    return f"{metric.margin:g}" if metric.scale == "absolute" else f"{100 * metric.margin:g}%"


def _on_scale(draft: Draft, path: KeyPath, metric: Metric, written: Quantity, most: float, why: str) -> float:
    """A share for ratio metrics, the number in the metric's unit for absolute ones; more than ``most`` is reported."""
    if metric.scale == "absolute" and written.percent:
        unit = f" in {metric.unit}" if metric.unit else ""
        draft.report(path, f"{written}: {metric.name} is judged by its absolute difference; "
                     f"write a number{unit}, such as {metric.margin:g}")  # fmt: skip
        return written.value
    value = written.value if metric.scale == "absolute" else written.share
    if value > most:
        slip = metric.scale == "ratio" and not written.percent and 1 <= value <= 100 * most
        hint = f"; did you mean {written}%?" if slip else ""
        limit = f"{most:.0%} or {most:g}" if metric.scale == "ratio" else f"{most:g} {metric.unit}".rstrip()
        draft.report(path, f"{written} must be at most {limit}: {why}{hint}")
    return value


def _check_only(draft: Draft, path: KeyPath, names: list[str], workloads: Workloads) -> None:
    arms = set(draft.names("engines"))
    cases = {*workloads.families, *draft.names("workloads")}
    for place, name in enumerate(names):
        if name in arms and name in cases:
            draft.report((*path, place), f"{name!r} is both an arm and a workload; rename one of them")
        elif name not in arms | cases and not (draft.is_excused(("engines",)) or draft.is_excused(("workloads",))):
            draft.report((*path, place), f"unknown arm or workload {name!r}{did_you_mean(name, arms | cases)}")
