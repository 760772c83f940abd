"""One verdict out of two: against the committed anchor, and against the recent sessions."""

from __future__ import annotations

from pytest_llmperf.model.verdict import Verdict, Word


def of_two(anchor: Verdict, recent: Verdict) -> Verdict:
    """The verdict that stands for both references of one gate.

    The anchor forgives no slow sink, the recent sessions no step that an earlier gain hides: REGRESSED against either
    is REGRESSED, and INCONCLUSIVE against either is not yet PASSED. IMPROVED asks for a new anchor, so the anchor alone
    says it. Recent sessions without the metric say nothing.
    """
    if anchor.p_pass is None:  # nothing was compared, and the word says why
        return anchor
    for word in (Word.REGRESSED, Word.INCONCLUSIVE):
        for verdict in (anchor, recent):
            if verdict.word is word:
                return verdict
    return anchor
