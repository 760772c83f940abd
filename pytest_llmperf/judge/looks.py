"""Looks: after how many runs a verdict is tried, and how much error each try may spend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Look:
    """One try at a verdict.

    Attributes:
        runs: candidate runs, all looks together.
        alpha: REGRESSED needs an adjusted p of "no worse" at or below this.
        beta: PASSED needs a p of "worse by the margin or more" at or below this.
    """

    runs: int
    alpha: float
    beta: float


LOOKS = (Look(1, 0.01, 0.05), Look(3, 0.02, 0.05), Look(5, 0.04, 0.05))
"""Tries of a repeated measurement. By the union bound a healthy family is red with at most the sum of the alphas, 7 %,
and a loss of the margin is PASSED with at most the sum of the betas, 15 %; docs/verdicts.md has what was seen."""


def halved(looks: Sequence[Look]) -> tuple[Look, ...]:
    """The looks of one of two references: half of each alpha, so that the union bound for both is that of one.

    The betas stay: PASSED needs both references, which makes a missed margin no likelier.
    """
    return tuple(replace(look, alpha=look.alpha / 2) for look in looks)


def from_now(looks: Sequence[Look], runs: int) -> tuple[Look, ...]:
    """The looks of a candidate that has ``runs`` runs already: those that would have come before are one.

    It has the alphas of all of them together.

    To judge the first of runs that are all there would be to leave evidence out.
    """
    gone = [look for look in looks if look.runs <= runs]
    if not gone:
        return tuple(looks)
    first = Look(runs, sum(look.alpha for look in gone), gone[-1].beta)
    return (first, *(look for look in looks if look.runs > runs))


TURNS = (Look(4, 0.025, 0.025), Look(8, 0.025, 0.025))
"""Tries of an A/B: more turns only while undecided. Each error adds up to at most 5 %, by the union bound."""

SINGLE = Look(1, 0.05, 0.05)
"""One try at whatever number of runs there is."""
