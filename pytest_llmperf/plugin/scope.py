"""Which cases belong together, on one worker and under one fresh start."""

from __future__ import annotations

from pytest_llmperf.model.suffix import SUITE_ITEM


def scope_of(nodeid: str) -> str:
    """Suite file and arm of a case or of one of its items: cases of one arm share a server."""
    file, _, case = nodeid.partition(SUITE_ITEM)
    return f"{file}{SUITE_ITEM}{case.partition('/')[0]}"
