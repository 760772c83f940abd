"""Speculation on against off, where a case compares such arms: does it pay, and does it say the same?"""

from __future__ import annotations

from dataclasses import dataclass

from pytest_llmperf.checks.identity import same_output
from pytest_llmperf.judge.break_even import break_even
from pytest_llmperf.model.finding import Finding
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.suite import Arm
from pytest_llmperf.model.verdict import Word
from pytest_llmperf.pipeline.measure import CaseMeasurement, measurement

DECIDES = ("output_throughput", "mean_tpot_ms", "mean_e2el_ms")
"""The metrics in which speculation can pay, the first that is gated decides."""


@dataclass(frozen=True, slots=True)
class Account:
    """What there is to say of it: in words, and as a finding."""

    text: str = ""
    findings: tuple[Finding, ...] = ()


def account(work: CaseMeasurement) -> Account:
    """The account of the first reference arm that does not speculate, where the candidate does.

    Where the workload is greedy, the same requests go to both once more, one at a time, and must be answered alike.

    Raises:
        EngineError: the engine died, hung or sent wrong answers.
    """
    off = next((arm for arm in work.case.references if not _speculates(work, "reference", arm)), None)
    if off is None or not _speculates(work, "candidate", work.subject):
        return Account()
    findings: tuple[Finding, ...] = ()
    if work.case.workload.temperature == 0 and work.affords(2):
        without, speculating = work.twins(off)
        findings = (same_output(speculating.run, without.run),)
    gate = _deciding(work.case.gates, off)
    if gate is None:
        return Account(findings=findings)
    found = break_even(measurement(work.of("candidate")), measurement(work.of("reference", off.name)), gate)
    if found.verdict.word is Word.INVALID:
        return Account(findings=findings)
    return Account(f"{off.name} against {work.subject.name}: {found}", findings)


def _speculates(work: CaseMeasurement, side: str, arm: Arm) -> bool:
    counts = [trial.run.acceptance for trial in work.trials if trial.run.role == side and trial.run.arm == arm.name]
    return any(each is not None and each.drafted > 0 for each in counts)


def _deciding(gates: tuple[Gate, ...], off: Arm) -> Gate | None:
    own = {gate.metric.name: gate for gate in gates if gate.reference == off.name}
    return next((own[name] for name in DECIDES if name in own), None)
