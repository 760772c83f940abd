"""Proof that gates can fail: under each one a loss of twice its margin is made, and it has to turn red.

The loss is made in the traffic, or in the engine, and takes the way of every measurement: client, store, judge. Nothing
is changed after it was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_llmperf.errors import LlmperfError
from pytest_llmperf.judge.failures import METRIC as FAILED_REQUESTS
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.injection import MOST, Injection, Slowdown
from pytest_llmperf.model.proof import Proof, State
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.pipeline.campaign import Campaign


def prove(campaign: Campaign, cases: Sequence[Case]) -> Iterator[Proof]:
    """One proof a gate, as they come; the campaign's injection is set and taken away again."""
    for case in map(campaign.calibrated, cases):
        for gate in case.gates:
            yield _of_gate(campaign, replace(case, gates=(gate,)), gate)
        if case.suite.failures is not None:
            yield _of_failures(campaign, replace(case, gates=case.gates[:1]))
        campaign.keep_for([case])


def injection_for(gate: Gate, ahead: float = 0.0) -> Injection | None:
    """A loss of twice the gate's margin, in log: a rise of (1+m)^2 - 1, a fall of 1 - (1-m)^2; None where none is.

    Times are lengthened where they arise. Throughputs fall with the pace of all streams, those of one user with that
    of each stream.

    Args:
        gate: to be turned red.
        ahead: how much better than the gate asks for it is now, on the scale of judgement; to be lost as well.
    """
    name, loss = gate.metric.name, 2 * gate.delta + ahead
    if name == "acceptance_length":
        return Injection("acceptance", loss)
    if gate.metric.scale == "absolute" or "concurren" in name:
        return None
    longer = math.expm1(loss)
    if gate.metric.better == "lower":
        return Injection(_stretched(name), longer) if longer <= MOST else None
    if "per_user" in name:  # a stream of 1 - share of the pace takes 1 / (1 - share) of the time
        return Injection("tpot" if name.startswith("decode") else "e2el", longer)
    return Injection("throughput", -math.expm1(-loss))


def _stretched(name: str) -> Slowdown:
    if "ttft" in name:
        return "ttft"
    return "e2el" if "e2el" in name else "tpot"


def _of_gate(campaign: Campaign, case: Case, gate: Gate) -> Proof:
    proof = Proof(case=case.id, metric=gate.metric.name, state=State.UNPROVEN)
    try:
        ahead = 0.0
        if _beside_another(case, gate):
            now = _measured(campaign, case, None)
            verdict = _verdict(now, proof.metric)
            if verdict is None or verdict.change is None:
                return replace(proof, why=f"how it is judged without a loss is not known: {_unjudged(now, verdict)}")
            ahead = _ahead(gate, verdict.change)
        injection = injection_for(gate, ahead)
        if injection is None:
            return replace(proof, why=f"no loss that can be made is twice the margin of {proof.metric}")
        proof = replace(proof, injection=injection)
        return _judged(proof, _measured(campaign, case, injection))
    except LlmperfError as error:
        return replace(proof, why=str(error))


def _beside_another(case: Case, gate: Gate) -> bool:
    """Whether the gate compares two that differ by nature, so that a loss must first use up what one is ahead."""
    return gate.reference is not None and (gate.at_least is not None or gate.reference != case.arm.name)


def _ahead(gate: Gate, change: float) -> float:
    """How much better than the gate asks for a change is, on the scale of judgement; 0 for one that is worse."""
    difference = gate.sign * (change if gate.metric.scale == "absolute" else math.log1p(change))
    return max(0.0, gate.null - difference)


def _of_failures(campaign: Campaign, case: Case) -> Proof:
    """Of the gate on failed requests: every one of them is made to fail."""
    injection = Injection("error")
    proof = Proof(case=case.id, metric=FAILED_REQUESTS, state=State.UNPROVEN, injection=injection)
    try:
        result = _measured(campaign, case, injection)
    except LlmperfError as error:
        return replace(proof, why=str(error))
    if result.failure and result.runs:  # without a run it never came so far
        return replace(proof, state=State.ALIVE)
    if result.failures is None:
        return replace(proof, why=_unjudged(result, None))
    return replace(proof, state=State.DEAD, verdict=result.failures, why=_said(result.failures))


def _measured(campaign: Campaign, case: Case, injection: Injection | None) -> CaseResult:
    campaign.inject = injection
    try:
        prepared = campaign.prepare(case, case.id, live=True)
        if prepared.failure or prepared.skipped:
            return prepared
        return campaign.measure(case, prepared, case.gates)
    finally:
        campaign.inject = None


def _judged(proof: Proof, result: CaseResult) -> Proof:
    verdict = _verdict(result, proof.metric)
    told = proof.injection is not None and proof.injection.kind == "acceptance"
    synthetic = told and result.environment.get("acceptance") == "synthetic"
    proof = replace(proof, verdict=verdict, synthetic=synthetic)
    if verdict is not None and verdict.word is Word.REGRESSED:
        return replace(proof, state=State.ALIVE)
    if verdict is not None and verdict.word in {Word.PASSED, Word.IMPROVED, Word.INCONCLUSIVE}:
        return replace(proof, state=State.DEAD, why=_said(verdict))
    return replace(proof, why=_unjudged(result, verdict))


def _verdict(result: CaseResult, metric: str) -> Verdict | None:
    return next((verdict for verdict in result.verdicts if verdict.metric == metric), None)


def _unjudged(result: CaseResult, verdict: Verdict | None) -> str:
    return result.failure or result.skipped or ("nothing measured" if verdict is None else _said(verdict))


def _said(verdict: Verdict) -> str:
    return f"{verdict.word}: {verdict.cause}" if verdict.cause else str(verdict.word)
