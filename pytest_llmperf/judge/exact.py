"""Counts that repeat exactly (``cv: 0``): no noise, no p; any difference beyond the floor decides."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.verdict import Word
from pytest_llmperf.stats.variance import mean


def decide(gate: Gate, reference: Sequence[float], candidate: Sequence[float]) -> tuple[Word, str]:
    """Word and cause from values on the scale of judgement.

    One run that is worse beyond the floor is REGRESSED, since nothing but a loss can move an exact count; IMPROVED
    needs all of them to be better. A reference that does not repeat itself was never exact: INCONCLUSIVE.
    """
    spread = max(reference) - min(reference)
    if spread > gate.floor:
        return Word.INCONCLUSIVE, (
            f"declared exact (cv: 0), but the reference's own runs differ by {spread:.4g}, floor {gate.floor:.4g};"
            " declare a cv, or accept a new baseline where this one is to blame"
        )
    centre = mean(reference)
    if max(candidate) - centre > gate.floor:
        return Word.REGRESSED, ""
    if max(candidate) - centre < -gate.floor:
        return Word.IMPROVED, ""
    return Word.PASSED, ""
