"""Prefix hits: what an engine's counters say of its prefix cache."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixHits:
    """Prompt tokens of one window: looked up in the cache, and found there. A cache that is off looks up none."""

    looked_up: int
    found: int
