"""Proof that gates can fail: under each one a loss of twice its margin is made, and it has to turn red.

The loss is made in the traffic, or in the engine, and takes the way of every measurement: client, store, judge. Nothing
is changed after it was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_llmperf.errors import LlmperfError
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.injection import MOST, Injection, Slowdown
from pytest_llmperf.model.proof import Proof, State
from pytest_llmperf.model.verdict import Word
from pytest_llmperf.pipeline.campaign import Campaign


def prove(campaign: Campaign, cases: Sequence[Case]) -> Iterator[Proof]:
    """One proof a gate, as they come; the campaign's injection is set and taken away again."""
    for case in cases:
        for gate in case.gates:
            injection = injection_for(gate)
            if injection is None:
                why = f"nothing lessens {gate.metric.name} by twice its margin, {gate.margin:g}"
                yield Proof(case=case.id, gate=gate, injection=None, state=State.UNPROVEN, why=why)
                continue
            campaign.inject = injection
            try:
                yield _proof(campaign, replace(case, gates=(gate,)), gate, injection)
            except LlmperfError as error:
                yield Proof(case=case.id, gate=gate, injection=injection, state=State.UNPROVEN, why=str(error))
            finally:
                campaign.inject = None
        campaign.keep_for([case])


def injection_for(gate: Gate) -> Injection | None:
    """A loss of twice the gate's margin, in log: a rise of (1+m)^2 - 1, a fall of 1 - (1-m)^2; None where none is.

    Times are lengthened where they arise. Throughputs fall with the pace of all streams, those of one user with that
    of each stream.
    """
    name = gate.metric.name
    if name == "acceptance_length":
        return Injection("acceptance", 2 * gate.margin)
    if gate.metric.scale == "absolute" or "concurren" in name:
        return None
    share = abs(math.expm1(2 * gate.delta * gate.sign))
    if gate.metric.better == "lower":
        return Injection(_stretched(name), share) if share <= MOST else None
    if "per_user" in name:  # a stream of 1 - share of the pace takes 1 / (1 - share) of the time
        return Injection("tpot" if name.startswith("decode") else "e2el", share / (1 - share))
    return Injection("throughput", share)


def _stretched(name: str) -> Slowdown:
    if "ttft" in name:
        return "ttft"
    return "e2el" if "e2el" in name else "tpot"


def _proof(campaign: Campaign, case: Case, gate: Gate, injection: Injection) -> Proof:
    prepared = campaign.prepare(case, case.id, live=True)
    if not (prepared.failure or prepared.skipped):
        prepared = campaign.measure(case, prepared, case.gates)
    verdict = next(iter(prepared.verdicts), None)
    if verdict is not None and verdict.word is Word.REGRESSED:
        return Proof(case=case.id, gate=gate, injection=injection, state=State.ALIVE, verdict=verdict)
    if verdict is not None and verdict.word in {Word.PASSED, Word.IMPROVED, Word.INCONCLUSIVE}:
        return Proof(
            case=case.id, gate=gate, injection=injection, state=State.DEAD, verdict=verdict,
            why=f"{verdict.word}{f': {verdict.cause}' if verdict.cause else ''}",
        )  # fmt: skip
    why = (
        prepared.failure or prepared.skipped or (f"{verdict.word}: {verdict.cause}" if verdict else "nothing measured")
    )
    return Proof(case=case.id, gate=gate, injection=injection, state=State.UNPROVEN, verdict=verdict, why=why)
