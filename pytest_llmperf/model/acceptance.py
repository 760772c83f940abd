"""Acceptance: the counts of speculative decoding."""

from __future__ import annotations

from dataclasses import dataclass

AT_POSITIONS = tuple(f"acceptance_at_{position}" for position in range(8))
"""Metrics of the places of a draft; longer drafts are seen as a whole."""
ACCEPTANCE = ("acceptance_length", "acceptance_rate", *AT_POSITIONS)
"""All metrics that these counts give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Counts of speculative decoding over the measured window.

    Attributes:
        steps: V, verify steps.
        accepted: A, accepted draft tokens; the bonus token is not one.
        drafted: T, drafted tokens.
        per_position: accepted tokens by position in the draft, () where the engine does not say.
        synthetic: True when the engine was told what to accept.
    """

    steps: int
    accepted: int
    drafted: int
    per_position: tuple[int, ...] = ()
    synthetic: bool = False
