"""Acceptance: the counts of speculative decoding."""

from __future__ import annotations

from dataclasses import dataclass


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
