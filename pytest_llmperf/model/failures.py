"""Failed requests: how many there were, and how many there may be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGate:
    """How many requests may fail.

    Attributes:
        allowed: the share that an engine in order may lose; more is FAILED once it is shown.
        limit: the share that must be excluded for PASSED; above ``allowed``.
    """

    allowed: float = 0.001
    limit: float = 0.01

    def __post_init__(self) -> None:
        if not 0 <= self.allowed < self.limit <= 1:
            raise ValueError(f"allowed {self.allowed} and limit {self.limit}: need 0 <= allowed < limit <= 1")
