"""Queueing: how long requests waited inside the server before it began with them, under each engine's own name."""

from __future__ import annotations

import math

from pytest_llmperf.model.counters import Counters

TOTALS = ("vllm:request_queue_time_seconds_sum", "sglang:queue_time_seconds_sum")
"""Seconds, over all requests; the first that is there is used. llama.cpp shows none."""


def queued_s(before: Counters | None, after: Counters | None) -> float | None:
    """Seconds between two scrapes, over all other labels; None where they are not counted, or went backwards."""
    for name in TOTALS:
        end = _total(after or {}, name)
        if end is None:
            continue
        waited = end - (_total(before or {}, name) or 0.0)
        return waited if math.isfinite(waited) and waited >= 0 else None
    return None


def _total(counters: Counters, name: str) -> float | None:
    found = [value for series, value in counters.items() if series.partition("{")[0] == name]
    return sum(found) if found else None
