"""What saved sessions say together: each case's metrics over time, and the nodes that are slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pytest_llmperf import baseline
from pytest_llmperf.history.fitness import invalid
from pytest_llmperf.judge.history import Night, SlowNode, slow_nodes
from pytest_llmperf.judge.timeline import Anchor, CaseHistory, Session, timeline
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.saved_run import SavedFacts
from pytest_llmperf.pipeline.saved_cases import SavedCase


def history_of(case: SavedCase, gates: Sequence[Gate], anchors: Mapping[str, Anchor]) -> CaseHistory:
    """The case over its sessions, in order of time; metrics that no session has are left out."""
    sessions = tuple(_sessions(case.runs, [gate.metric.name for gate in gates]))
    found = [timeline(sessions, gate, anchors.get(gate.metric.name)) for gate in gates]
    return CaseHistory(
        suite=case.suite,
        case=case.case,
        arm=case.arm,
        runs=len(case.runs),
        sessions=sessions,
        timelines=tuple(each for each in found if each is not None),
    )


def anchors_of(case: SavedCase, store: baseline.Store) -> dict[str, Anchor]:
    """The committed baseline of a case, by metric: where it has one that may be compared with its newest run.

    A variant is judged by the baseline of another arm, and has none of its own.

    Raises:
        BaselineError: a file cannot be read.
    """
    if case.variant or not case.runs:
        return {}
    stored = store.read_case(case.facts.get("hardware", ""), case.suite, case.case, any_hardware=True)
    found: dict[str, Anchor] = {}
    for each in reversed(stored):  # the machine's own is before that of any hardware
        usable = baseline.reference([each], case.facts).measurement
        found |= {name: Anchor(value=usable.mean(name), on=each.accepted.on) for name in usable.samples}
    return found


def slow_nodes_of(histories: Sequence[CaseHistory]) -> list[SlowNode]:
    """The nodes that are slow over all cases; cases that were measured by one server are one night."""
    values: dict[str, dict[str, float]] = {}
    nodes: dict[str, str] = {}
    gates: dict[str, Gate] = {}
    for history in histories:
        for line in history.timelines:
            name = f"{history.suite} {history.case} {history.arm} {line.gate.metric.name}"
            gates[name] = line.gate
            for session, value in zip(line.sessions, line.values, strict=True):
                values.setdefault(session.id, {})[name] = value
                nodes[session.id] = session.facts.get("node", "unknown")
    return slow_nodes([Night(node=nodes[session], values=found) for session, found in values.items()], gates)


def _sessions(runs: Sequence[SavedFacts], metrics: Sequence[str]) -> list[Session]:
    by_session: dict[str, list[SavedFacts]] = {}
    for saved in runs:
        by_session.setdefault(saved.run.session, []).append(saved)
    return [
        Session(id=session, started=of[0].run.started, facts=of[0].run.environment, values=_means(of, metrics))
        for session, of in by_session.items()
    ]


def _means(runs: Sequence[SavedFacts], metrics: Sequence[str]) -> dict[str, float]:
    """Of the runs that have a valid value."""
    valid: dict[str, list[float]] = {}
    for saved in runs:
        wrong = invalid(saved, metrics)
        for name in metrics:
            if name in saved.values and name not in wrong:
                valid.setdefault(name, []).append(saved.values[name])
    return {name: fmean(values) for name, values in valid.items()}
