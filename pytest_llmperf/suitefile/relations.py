"""Relations: what an arm promises beside another one of the same session, as gates of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.metric import Metric
from pytest_llmperf.model.suite import Arm, Workload
from pytest_llmperf.registry import did_you_mean
from pytest_llmperf.suitefile.document import KeyPath
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.expansion import judges
from pytest_llmperf.suitefile.gates import check_reference, example_margin, known_metric, margin_of
from pytest_llmperf.suitefile.keys import RelationKeys, SuiteKeys
from pytest_llmperf.suitefile.workloads import Workloads


def resolve_relations(
    draft: Draft, keys: SuiteKeys, workloads: Workloads, arms: Mapping[str, Arm], gates: Sequence[Gate]
) -> tuple[Gate, ...]:
    """A gate for each relation, in the order of the file; one that an earlier gate says too is reported."""
    found: list[Gate] = []
    for name, entries in (keys.relations or {}).items():
        if name not in draft.names("engines") and not draft.is_excused(("engines",)):
            draft.report(("relations", name), f"unknown arm {name!r}{did_you_mean(name, draft.names('engines'))}")
        for path, entry in zip(_paths(draft, name), entries, strict=True):
            gate = _relation(draft, path, name, entry, keys, workloads)
            if gate is None:
                continue
            if not draft.is_wrong(path) and name in arms:
                _check_arms(draft, path, gate, arms, workloads.workloads)
                _check_new(draft, path, gate, [*gates, *found], arms, workloads.workloads)
            found.append(gate)
    return tuple(found)


def _paths(draft: Draft, arm: str) -> list[KeyPath]:
    """Where the relations of an arm are written, as one mapping or as a list of them."""
    path: KeyPath = ("relations", arm)
    written = draft.data["relations"][arm]
    return [(*path, place) for place in range(len(written))] if isinstance(written, list) else [path]


def _relation(
    draft: Draft, path: KeyPath, arm: str, entry: RelationKeys, keys: SuiteKeys, workloads: Workloads
) -> Gate | None:
    metric = None if entry.metric is None else known_metric(draft, (*path, "metric"), entry.metric, keys)
    if entry.metric is None and not draft.is_excused((*path, "metric")):
        draft.report(path, "needs 'metric', such as metric: output_throughput")
    if entry.vs is not None:
        check_reference(draft, (*path, "vs"), entry.vs, keys)
        if entry.vs == arm:
            draft.report((*path, "vs"), f"{arm!r} compared with itself promises nothing; name another arm")
    elif not draft.is_excused((*path, "vs")):
        draft.report(path, "needs 'vs', the arm to compare with")
    only = workloads.select(draft, (*path, "only"), entry.only or [])
    if metric is None:
        return None
    margin = margin_of(draft, (*path, "margin"), metric, entry.margin)
    _check_scale(draft, path, metric, entry)
    if entry.vs is None:
        return None
    return Gate(
        metric=metric,
        margin=margin,
        reference=entry.vs,
        at_least=entry.at_least,
        line=draft.line(path),
        only_arms=(arm,),
        only_workloads=only,
    )


def _check_scale(draft: Draft, path: KeyPath, metric: Metric, entry: RelationKeys) -> None:
    if entry.margin == "auto":
        draft.report((*path, "margin"), "auto goes by the calibration in the stored baseline, and a relation has none; "
                     f"write a margin, such as {example_margin(metric)}")  # fmt: skip
    if entry.at_least is not None and metric.scale == "absolute":
        draft.report((*path, "at_least"), f"{metric.name} is judged by its absolute difference, not by how many times "
                     "as good it is; leave at_least out")  # fmt: skip


def _check_arms(
    draft: Draft, path: KeyPath, gate: Gate, arms: Mapping[str, Arm], workloads: Mapping[str, Workload]
) -> None:
    """Both arms must run under each workload that the relation is judged under."""
    [name] = gate.only_arms
    judged = [workload for workload in gate.only_workloads or workloads if arms[name].runs(workload)]
    if workloads and not judged:
        draft.report((*path, "only"), f"{name!r} runs under none of these; name a workload that it runs under")
    other = arms.get(gate.reference or "")
    apart = [workload for workload in judged if other is not None and not other.runs(workload)]
    if apart:
        draft.report((*path, "vs"), f"{gate.reference!r} does not run under {apart[0]!r}; name by only the workloads "
                     "that both arms run under")  # fmt: skip


def _check_new(
    draft: Draft,
    path: KeyPath,
    gate: Gate,
    others: Sequence[Gate],
    arms: Mapping[str, Arm],
    workloads: Mapping[str, Workload],
) -> None:
    """A case may have a metric against several references, but only once against each."""
    for other in others:
        if (other.metric, other.reference) == (gate.metric, gate.reference) and any(
            judges(other, arm, workload) and judges(gate, arm, workload)
            for arm in arms.values()
            for workload in workloads
            if arm.runs(workload)
        ):
            draft.report(path, f"{gate.metric.name} is compared with {gate.reference!r} on line {other.line} already; "
                         "keep one of the two")  # fmt: skip
            return
