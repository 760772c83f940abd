"""Queueing: does TTFT tell how fast the engine is, or how long its queue was?"""

from __future__ import annotations

from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.records import NEVER, Records

QUEUED_SHARE = 0.5
"""Of the time to the first tokens; beyond it, TTFT is mostly a wait for other requests."""


def queueing(records: Records, queued_s: float | None) -> list[Finding]:
    """The share of all TTFTs that requests waited in the server's queue; nothing where the server does not count it.

    When everything is sent at once, TTFT is nearly the time of the whole run: that is the load's doing.
    """
    came = records.ok & (records.sent_ns != NEVER) & (records.first_token_ns != NEVER)
    waited_s = float((records.first_token_ns - records.sent_ns)[came].sum()) / 1e9
    if queued_s is None or waited_s <= 0:
        return []
    share = min(queued_s / waited_s, 1.0)
    return [
        Finding(
            check="queueing",
            status=Status.FAIL if share > QUEUED_SHARE else Status.PASS,
            policy="warn",
            value=f"{share:.0%} of TTFT was a wait in the server's queue",
            expected=f"at most {QUEUED_SHARE:.0%}",
            evidence="the server's counter of queued time before and after the run, and the TTFTs of its requests",
            remedy="take TTFT from a load that the server can begin with at once; throughput is not concerned",
        )
    ]
