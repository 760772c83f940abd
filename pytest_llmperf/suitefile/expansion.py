"""Expansion: a suite into its cases, and which names and overrides of the command line mean something in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_llmperf.errors import SuiteError, UsageError
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.suite import Arm, Suite, Workload
from pytest_llmperf.registry import did_you_mean


def expand(suite: Suite, *, engines: Sequence[str] = ()) -> list[Case]:
    """The cases of the arms named in ``engines``, or of all arms with ``default: true``; arm after arm.

    Raises:
        UsageError: a name that is no arm of this suite (ask ``knows`` first where there are several suites), or two
            arms that are judged under the same case ids.
        SuiteError: variables are not set that these arms, or those that they are compared with, need.
    """
    return _whole(suite, _expanded(suite, engines))


def expand_known(suite: Suite, engines: Sequence[str]) -> list[Case]:
    """The cases of those of ``engines`` that are arms of this suite; of its default arms where none is named at all."""
    arms = [name for name in engines if knows(suite, name)]
    return [] if engines and not arms else expand(suite, engines=arms)


def expand_pair(suite: Suite, reference: str, candidate: str) -> list[Case]:
    """The cases of an A/B of two arms: those of ``candidate``; none where the suite lacks one of the two."""
    if not (knows(suite, reference) and knows(suite, candidate)):
        return []
    return _whole(suite, [case.against(reference) for case in _expanded(suite, [candidate])])


def knows(suite: Suite, name: str) -> bool:
    """Whether ``--llmperf-engine name`` means an arm of this suite."""
    return name in suite.arms


def every_id(suite: Suite) -> list[str]:
    """The ids of the cases of all arms, also of those that run only when they are named."""
    return list(dict.fromkeys(case.id for arm in suite.arms.values() for case in _cases(suite, arm)))


def judges(gate: Gate, arm: Arm, workload: str) -> bool:
    """Whether a gate is one of the cases of an arm under a workload; a variant has those of its arm, too."""
    named = not gate.only_arms or arm.name in gate.only_arms or arm.judged_as in gate.only_arms
    return named and (not gate.only_workloads or workload in gate.only_workloads)


def ungated(suite: Suite, arm: Arm) -> list[str]:
    """The ids, without load, of an arm's cases that no gate judges."""
    names = (name for name, workload in suite.workloads.items() if arm.runs(name) and not _gates(suite, arm, workload))
    return [f"{arm.judged_as}/{name}" for name in names]


def _expanded(suite: Suite, engines: Sequence[str]) -> list[Case]:
    return [case for arm in _selected(suite, engines) for case in _cases(suite, arm)]


def _whole(suite: Suite, cases: list[Case]) -> list[Case]:
    """The cases, whose arms must be whole: those under judgement and those that they are compared with."""
    needed = dict.fromkeys(arm.name for case in cases for arm in (case.arm, *case.references)) if suite.unset else ()
    unset = dict.fromkeys(mistake for name in needed for mistake in suite.unset.get(name, ()))
    if unset:
        raise SuiteError(list(unset))
    return cases


def _cases(suite: Suite, arm: Arm) -> Iterator[Case]:
    for name, workload in suite.workloads.items():
        if arm.runs(name):
            gates = _gates(suite, arm, workload)
            for load in suite.loads[name]:
                yield Case(suite=suite, arm=arm, workload=workload, load=load, gates=gates)


def _gates(suite: Suite, arm: Arm, workload: Workload) -> tuple[Gate, ...]:
    return tuple(gate for gate in suite.gates if judges(gate, arm, workload.name))


def _selected(suite: Suite, engines: Sequence[str]) -> list[Arm]:
    for name in engines:
        if not knows(suite, name):
            raise UsageError(f"--llmperf-engine: {name!r} is no arm of {suite.name}{did_you_mean(name, suite.arms)}")
    wanted = [arm for arm in suite.arms.values() if (arm.name in engines if engines else arm.default)]
    judged: dict[str, str] = {}
    for arm in wanted:
        if judged.setdefault(arm.judged_as, arm.name) != arm.name:
            raise UsageError(f"--llmperf-engine: {judged[arm.judged_as]!r} and {arm.name!r} of {suite.name} are both "
                             f"judged as {arm.judged_as!r}; run them one after the other")  # fmt: skip
    return wanted
