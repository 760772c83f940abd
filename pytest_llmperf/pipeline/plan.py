"""What a session would do, as text: cases in order, commands, runs, starts and expected time. Starts nothing."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from pytest_llmperf import judge
from pytest_llmperf.engines.base import engine_of
from pytest_llmperf.judge.words import size
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.redaction import redacted_value
from pytest_llmperf.model.suite import Arm
from pytest_llmperf.pipeline import archive
from pytest_llmperf.pipeline.facts import redacted_args
from pytest_llmperf.pipeline.launching import command_of
from pytest_llmperf.pipeline.measure import INTERLEAVING
from pytest_llmperf.pipeline.servers import server_key

FOLDER = Path("<folder>")
"""Stands for the server's own folder, which has no name before it starts."""


def describe(cases: Sequence[tuple[str, Case, Collection[str]]], subjects: Sequence[Arm], save: Path) -> list[str]:
    """Lines for the terminal.

    Args:
        cases: node id, case with the selected gates, and names of the selected items.
        subjects: the arm that is measured in each case.
        save: where earlier runs are, from which the time is expected.
    """
    lines: list[str] = []
    starts, seconds, unknown = 0, 0.0, 0
    running: set[str] = set()
    for (nodeid, case, items), subject in zip(cases, subjects, strict=True):
        wanted = _servers(case, subject) if case.gates else {}
        starts += len(wanted) * judge.TURNS[0].runs if case.apart else len(wanted.keys() - running)
        running = set(wanted)
        earlier = archive.earlier_run_seconds(save, case)
        lines += ["", nodeid, *(f"    {line}" for line in _case_lines(case, subject, items))]
        if not case.gates:
            continue
        if earlier is None:
            unknown += 1
        else:
            seconds += earlier * _runs(case)
    time = f"about {seconds / 60:.1f} min of load by earlier runs" if seconds else "time unknown"
    if seconds and unknown:
        time += f", and {unknown} case{'s' * (unknown != 1)} never measured here"
    head = f"{len(cases)} case{'s' * (len(cases) != 1)}, {starts} engine start{'s' * (starts != 1)}, {time}"
    budgets = dict.fromkeys(_budget(case.suite.name, case.suite.budget_s) for _, case, _ in cases)
    return [head, *filter(None, budgets), *lines]


def _budget(suite: str, seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{suite} may take {seconds / 60:g} min; then no further look is taken, and what has not begun is not run"


def _servers(case: Case, subject: Arm) -> dict[str, Arm]:
    """Those that are started for a case: nobody starts the servers of others, or what is not here."""
    servers = {server_key(subject): subject}
    for arm in case.references:
        servers[f"{server_key(arm)} reference"] = arm
    return {key: arm for key, arm in servers.items() if _started(arm)}


def _started(arm: Arm) -> bool:
    engine = engine_of(arm)
    return not engine.unavailable(arm) and command_of(engine, arm, FOLDER) is not None


def _case_lines(case: Case, subject: Arm, items: Collection[str]) -> list[str]:
    lines = [
        f"items      {', '.join(items)}",
        f"workload   {case.workload}, {case.load}",
        f"candidate  {subject.name}: {_command(subject)}",
    ]
    lines += [f"reference  {arm.name}: {_command(arm)}" for arm in case.references]
    if case.gates:
        lines.append(f"runs       {_schedule(case)}")
    lines += [f"gate       {_gate(gate)}" for gate in case.gates]
    if case.gates and case.suite.failures is not None:
        lines.append(f"failures   {_failures(case.suite.failures)}")
    lines += [f"excused    {each}" for each in _quarantines(case)]
    return lines


def _failures(gate: FailureGate) -> str:
    return f"{100 * gate.allowed:g} % of the requests may fail, and {100 * gate.limit:g} % must be excluded"


def _quarantines(case: Case) -> Iterator[str]:
    """Whatever day it is: each says until when it holds."""
    for each in case.suite.quarantine:
        names = [gate.metric.name for gate in case.gates if each.holds(case.id, gate.metric.name, each.until)]
        if names:
            yield f"{', '.join(dict.fromkeys(names))} {each}"


def _command(arm: Arm) -> str:
    engine = engine_of(arm)
    if reason := engine.unavailable(arm):
        return f"skipped: {reason}"
    command = command_of(engine, arm, FOLDER)
    if command is None:
        return f"attach to {engine.address(arm, FOLDER)}"
    environment = [f"{key}={redacted_value(key, value)}" for key, value in command.env.items()]
    return shlex.join([*environment, *redacted_args(command.argv)])


def _schedule(case: Case) -> str:
    parts = []
    if case.references:
        turns = INTERLEAVING * (judge.TURNS[0].runs // INTERLEAVING.count("B"))
        more = f", again while undecided, up to {judge.TURNS[-1].runs} of each; a start for every run"
        parts.append(f"{turns} (A reference, B candidate){more if case.apart else ''}")
    if any(gate.reference is None for gate in case.gates):
        looks = ", ".join(str(look.runs) for look in judge.LOOKS)
        parts.append(f"against the baseline after {looks} runs, until decided")
    return "; ".join(parts)


def _gate(gate: Gate) -> str:
    promise = "" if gate.at_least is None else f"at least {gate.at_least:g} times as good, "
    margin = "auto (by the calibration in the baseline)" if gate.auto else size(gate, gate.margin)
    return f"{gate.metric.name}: {promise}margin {margin} against {gate.reference or 'the stored baseline'}"


def _runs(case: Case) -> int:
    turns = judge.TURNS[0].runs * (1 + len(case.references)) if case.references else 0
    return max(turns, judge.LOOKS[0].runs)
