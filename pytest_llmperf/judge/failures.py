"""Failed requests out of all requests: an exact binomial test of its own.

It is no member of the case's Benjamini-Hochberg family: an engine in order fails next to nothing, so its p is 1, and as
a member it could only make a loss of the others harder to see. On its own, times the number of cases, it adds at most
``LEVEL`` to the red nights, and that only for an engine that fails exactly as often as it may. It has no looks, since
healthy nights should not be measured longer to show that nothing failed, and no fresh start: what failed has failed.
"""

from __future__ import annotations

import math

from pytest_llmperf.judge.evidence import CONFIDENCE_TAIL, MISSED
from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.stats import binomial

METRIC = "failed_requests"
AGAINST = "allowed rate"
LEVEL = 0.01
"""FAILED needs a p of "no more than allowed", times the number of cases, at or below this."""
BETA = 0.05
"""PASSED needs a p of "the limit or more" at or below this: 299 requests without a failure exclude 1 %."""


def failures(gate: FailureGate, failed: int, requests: int, *, family: int = 1, runs: int = 0) -> Verdict:
    """FAILED where more requests fail than allowed, PASSED where the limit is excluded, else INCONCLUSIVE.

    Requests are counted here, though they share the luck of a run: failures that come in clusters are real ones, and
    make FAILED likelier.

    Args:
        gate: what may fail.
        failed: requests without a whole answer, of all valid runs.
        requests: all that were sent.
        family: C, the number of gated cases that are judged together.
        runs: as shown beside the verdict.

    Raises:
        ValueError: counts that cannot be.
    """
    if not 0 <= failed <= requests or requests == 0:
        raise ValueError(f"{failed} of {requests} requests failed: need 0 <= failed <= requests, and a request")
    p_more = min(1.0, family * binomial.at_least(failed, requests, gate.allowed))
    p_limit = binomial.at_most(failed, requests, gate.limit)
    word, cause = Word.PASSED, ""
    if failed and p_more <= LEVEL:
        word = Word.FAILED
        cause = f"{failed} of {requests} requests failed, {100 * gate.allowed:g} % may"
    elif p_limit > BETA:
        word, cause = Word.INCONCLUSIVE, _cause(gate, failed, requests)
    low, high = binomial.limits(failed, requests, CONFIDENCE_TAIL)
    critical = binomial.fewest(requests, gate.allowed, LEVEL / family)
    return Verdict(
        metric=METRIC,
        word=word,
        margin=gate.limit,
        reference=gate.allowed,
        measured=failed / requests,
        change=failed / requests - gate.allowed,
        interval=(low - gate.allowed, high - gate.allowed),
        p_fail=p_more,
        p_pass=p_limit,
        smallest_visible=binomial.seen(max(critical, 1), requests, 1 - MISSED),
        runs=runs,
        against=AGAINST,
        cause=cause,
    )


def _cause(gate: FailureGate, failed: int, requests: int) -> str:
    needed = math.ceil(math.log(BETA) / math.log1p(-gate.limit)) if gate.limit < 1 else 1
    limit = f"{100 * gate.limit:g} %"
    if requests < needed:
        return f"too few requests: {failed} of {requests} failed, and {needed} without a failure would exclude {limit}"
    return f"borderline: {failed} of {requests} failed, which neither shows more than allowed nor excludes {limit}"
