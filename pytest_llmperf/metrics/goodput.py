"""Goodput: requests that succeeded within every limit."""

from __future__ import annotations

import numpy as np

from pytest_llmperf.metrics.samples import output_known
from pytest_llmperf.model.records import Records
from pytest_llmperf.model.slo import Slo


def good_requests(records: Records, slo: Slo) -> int | None:
    """How many; None when a count that TPOT needs is unknown.

    A limit is kept up to itself. A request of a single token has no TPOT, so that it keeps that limit.
    """
    if slo.tpot_s is not None and not output_known(records):
        return None
    gaps = np.maximum(records.output_tokens - 1, 1)
    latencies_s = (
        (slo.ttft_s, (records.first_token_ns - records.sent_ns) / 1e9),
        (slo.tpot_s, (records.last_token_ns - records.first_token_ns) / 1e9 / gaps),
        (slo.e2el_s, (records.last_token_ns - records.sent_ns) / 1e9),
    )
    good = records.ok.copy()
    for limit_s, latency_s in latencies_s:
        if limit_s is not None:
            good &= latency_s <= limit_s
    return int(np.count_nonzero(good))
