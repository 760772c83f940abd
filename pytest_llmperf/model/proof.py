"""A proof: whether one gate turned red when a loss was made under it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pytest_llmperf.model.injection import Injection
from pytest_llmperf.model.verdict import Verdict


class State(StrEnum):
    """ALIVE: it turned red. DEAD: it was judged under the loss and did not. UNPROVEN: it could not be judged so."""

    ALIVE = "alive"
    DEAD = "DEAD"
    UNPROVEN = "UNPROVEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What came of one gate of one case.

    Attributes:
        metric: name of the one that the gate judges.
        injection: what was done; None when nothing could be.
        verdict: under the loss; None without one.
        synthetic: whether the engine lost its acceptance by being told what to accept.
        why: of a gate that is not alive.
    """

    case: str
    metric: str
    state: State
    injection: Injection | None = None
    verdict: Verdict | None = None
    synthetic: bool = False
    why: str = ""
