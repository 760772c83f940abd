"""Proofs as lines for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.proof import Proof, State
from pytest_llmperf.reports.layout import change


def render(proof: Proof) -> Iterator[str]:
    """One gate: its state, what was done, what was seen; why it is not alive on a line below."""
    injected = "nothing to inject" if proof.injection is None else str(proof.injection)
    yield f"{proof.state:8}  {proof.case}  {proof.metric}   {injected}{_seen(proof)}"
    if proof.why:
        yield from (f"          {line}" for line in proof.why.splitlines())


def _seen(proof: Proof) -> str:
    verdict = proof.verdict
    if verdict is None or verdict.change is None or proof.metric not in METRICS:
        return ""
    counts = " (synthetic counts, judged as natural ones)" if proof.synthetic else ""
    return f"   measured {change(verdict.change, METRICS[proof.metric])}{counts}: {verdict.word}"


def summary(proofs: Sequence[Proof]) -> str:
    """How many gates are alive, and what of the others."""
    counts = Counter(proof.state for proof in proofs)
    others = [f"{counts[state]} {state}" for state in (State.DEAD, State.UNPROVEN) if counts[state]]
    return ", ".join([f"{counts[State.ALIVE]} of {len(proofs)} gates are alive", *others])
