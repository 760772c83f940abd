"""Speculation counters: the same three totals under each engine's own names.

vLLM and llama.cpp (since 2026) count alike: verify steps, drafted and accepted tokens, accepted tokens by position.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from pytest_llmperf.errors import DeathError
from pytest_llmperf.model.acceptance import Acceptance
from pytest_llmperf.model.counters import Counters

PREFIXES = ("vllm:spec_decode_num_", "llamacpp:spec_decode_num_")
"""What the names of one engine's counters begin with; the first that is there is used."""

_STEPS, _DRAFTED, _ACCEPTED = "drafts_total", "draft_tokens_total", "accepted_tokens_total"
_PER_POSITION = "accepted_tokens_per_pos_total"
_POSITION = re.compile(r'[{,]position="(\d+)"')


def acceptance(before: Counters, after: Counters) -> Acceptance | None:
    """Counts between two scrapes, summed over all other labels (engines, models).

    None when ``after`` has no such counters or one of them is no count (NaN, infinite, negative), or when nothing was
    ever drafted: llama.cpp shows zeros without speculation. Whether the counts fit each other and the run is for
    ``checks.validity.acceptance_findings`` to say.

    Raises:
        DeathError: a counter went backwards.
    """
    for prefix in PREFIXES:
        start, end = _totals(before, prefix), _totals(after, prefix)
        if not {_STEPS, _DRAFTED, _ACCEPTED} <= end.keys():
            continue
        if not end[_DRAFTED] or not all(map(_is_count, (*start.values(), *end.values()))):
            return None
        moved = {name: round(value - start.get(name, 0.0)) for name, value in end.items()}
        if backwards := sorted(name for name, delta in moved.items() if delta < 0):
            raise DeathError(
                f"counter {prefix}{backwards[0]} went backwards: the server was restarted during the run", cause="crash"
            )
        return Acceptance(
            steps=moved[_STEPS],
            accepted=moved[_ACCEPTED],
            drafted=moved[_DRAFTED],
            per_position=_positions(moved),
        )
    return None


def _totals(counters: Counters, prefix: str) -> dict[str, float]:
    """Sum by name, and by ``name/POSITION`` for the counter that has positions."""
    totals: dict[str, float] = {}
    for series, value in counters.items():
        if not series.startswith(prefix):
            continue
        name, _, labels = series.removeprefix(prefix).partition("{")
        position = _POSITION.search("{" + labels)
        key = f"{name}/{position[1]}" if name == _PER_POSITION and position else name
        totals[key] = totals.get(key, 0.0) + value
    return totals


def _is_count(value: float) -> bool:
    return math.isfinite(value) and value >= 0


def _positions(moved: Mapping[str, int]) -> tuple[int, ...]:
    """Counts by position; a position that nobody ever reached has no series and counts 0."""
    by_position = {int(key.rpartition("/")[2]): count for key, count in moved.items() if "/" in key}
    return tuple(by_position.get(position, 0) for position in range(max(by_position, default=-1) + 1))
