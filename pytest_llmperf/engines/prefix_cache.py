"""Counters of the prefix cache, under each engine's own names."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pytest_llmperf.model.counters import Counters
from pytest_llmperf.model.prefix_hits import PrefixHits

_VLLM = "vllm:prefix_cache_hits_total"
_SGLANG = "sglang:cached_tokens_total"
_LLAMA_CPP = "llamacpp:prompt_tokens_cached_total"

LOOKED_UP: Mapping[str, tuple[str, ...]] = {
    _VLLM: ("vllm:prefix_cache_queries_total",),
    _SGLANG: ("sglang:prompt_tokens_total",),
    _LLAMA_CPP: ("llamacpp:prompt_tokens_total", _LLAMA_CPP),  # the first one has only those that were computed
}
"""By the counter of the tokens that were found, the counters that add up to those that were looked up."""

ELSEWHERE = "vllm:external_prefix_cache_hits_total"
"""Found in a cache that several vLLM share; not among those of the engine's own cache, and absent without one."""


def prefix_hits(before: Counters, after: Counters) -> PrefixHits | None:
    """Prompt tokens between two scrapes, summed over all labels.

    None when ``after`` has no such counters, or one of them is no count or went backwards: that is no evidence.
    """
    for found, looked_up in LOOKED_UP.items():
        moved = _moved(before, after, {found, ELSEWHERE, *looked_up})
        if not {found, *looked_up} <= moved.keys():
            continue
        if not all(math.isfinite(count) and count >= 0 for count in moved.values()):
            return None
        hits = moved[found] + (moved.get(ELSEWHERE, 0.0) if found == _VLLM else 0.0)
        return PrefixHits(looked_up=round(sum(moved[name] for name in looked_up)), found=round(hits))
    return None


def _moved(before: Counters, after: Counters, names: set[str]) -> dict[str, float]:
    moved: dict[str, float] = {}
    for sign, counters in ((1, after), (-1, before)):
        for series, value in counters.items():
            name = series.partition("{")[0]
            if name in names and (sign > 0 or name in moved):
                moved[name] = moved.get(name, 0.0) + sign * value
    return moved
