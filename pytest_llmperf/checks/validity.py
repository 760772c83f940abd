"""Validity of a run: could the client keep up, was the prefix cache cold, are the counters of this run alone?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pytest_llmperf.model.acceptance import ACCEPTANCE, Acceptance
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.prefix_hits import PrefixHits
from pytest_llmperf.model.records import Records
from pytest_llmperf.model.run import ClientFacts

LAG_SHARE_OF_MARGIN = 0.25
CPU_SHARE_LIMIT = 0.9
SCHEDULE_LAG_LIMIT_MS = 5.0
FOREIGN_SHARE = 0.1
"""Of the output tokens: what the counters of speculation may show beyond them."""

COALESCED_LIMIT = 0.005
"""Of the chunks: each spoils the gap before it and the one behind, and one in a hundred moves a P99."""

_SUMS_OF_GAPS = ("mean_itl_ms", "mean_token_itl_ms")
"""Here the lags of a gap's two ends cancel, all but those of the first and the last."""


PREFIX_HITS = (0.0, 0.01)
"""Share of prompt tokens that may come from the engine's prefix cache where the suite does not say."""

_SPREAD_THE_CLIENT = "find what else uses the CPU; with four cores or more the client has some of its own"


def client_findings(client: ClientFacts, metrics: Mapping[str, float], gates: Sequence[Gate]) -> list[Finding]:
    """Whether the load client was fast enough for each gated metric that a slow client could move.

    A stamp is late by the client's lag. That moves TTFT, E2EL and percentiles of ITL by lag / their value, and TPOT,
    mean ITL and throughputs by lag / length of a request. More than a quarter of a gate's margin makes its metric
    invalid. The lag is taken by the statistic of the metric: its median for medians, its 99th percentile for
    percentiles, its mean for means and throughputs.
    """
    gated = [gate for gate in gates if gate.metric.timing]
    findings = [_lag(client, metrics, gated), _cpu(client, gated), _coalescing(client, metrics, gated)]
    if client.schedule_lag_p99_ms is not None:
        findings.append(_schedule(client.schedule_lag_p99_ms, gated))
    return findings


def prefix_findings(
    records: Records, expected: tuple[float, float] = PREFIX_HITS, *, counted: PrefixHits | None = None
) -> Finding:
    """Whether the share of prompt tokens that came from the engine's prefix cache is within ``expected``.

    By the usage of the answers; where that does not say, by ``counted``, the engine's counters over the run. The first
    token of each prompt is not counted: a BOS is common to all of them and always in the cache.
    """
    share, evidence = _prefix_share(records, counted)
    expectation = f"{expected[0]:.0%} to {expected[1]:.0%} of prompt tokens"
    if share is None:
        return Finding(
            check="prefix_cache", status=Status.UNSUPPORTED, policy="require", expected=expectation,
            value="the server does not report cached tokens",
        )  # fmt: skip
    return Finding(
        check="prefix_cache",
        status=Status.PASS if expected[0] <= share <= expected[1] else Status.FAIL,
        policy="require",
        value=f"{share:.1%} of prompt tokens from the cache",
        expected=expectation,
        evidence=evidence,
        remedy=(
            "is the engine's prefix cache on? shared prefixes were not found in it"
            if share < expected[0]
            else "use prompts that the server has not seen, or switch its prefix cache off"
        ),
    )


def _prefix_share(records: Records, counted: PrefixHits | None) -> tuple[float | None, str]:
    """Cached share of prompt tokens, None where nobody says; and who says it."""
    known = records.ok & (records.input_tokens > 0)
    told = known & (records.cached_tokens >= 0)
    if told.any():  # some servers say it only of requests that had hits: what is not said is none
        cached = np.maximum(records.cached_tokens[told] - 1, 0).sum()
        evidence = f"usage.prompt_tokens_details.cached_tokens of {np.count_nonzero(told)} requests"
        return float(cached / records.input_tokens[known].sum()), evidence
    if counted is None:
        return None, ""
    cached = max(counted.found - len(records), 0)
    evidence = f"the engine's counters: {counted.found} of {counted.looked_up} tokens looked up were found"
    return cached / max(counted.looked_up, 1), evidence


def acceptance_findings(acceptance: Acceptance | None, records: Records) -> list[Finding]:
    """Whether the counters of speculation can be true, and are of this run alone; nothing without them.

    Each verify step drafts at least one token and brings its accepted ones and one of its own, so steps + accepted is
    at most the run's output tokens, and for each request what the last draft had beyond its end. More by over
    ``FOREIGN_SHARE`` of the output is somebody else's traffic. Less is no fault: the first token of an answer comes
    without a step, and so does every token for which nothing was drafted (n-grams without a match).
    """
    if acceptance is None:
        return []
    wrong = _impossible(acceptance) or _foreign(acceptance, records)
    return [
        Finding(
            check="acceptance_counters",
            status=Status.FAIL if wrong else Status.PASS,
            policy="require",
            value=wrong or f"{acceptance.steps} steps, {acceptance.accepted} accepted of {acceptance.drafted} drafted",
            expected="at least one draft a step, no more accepted than drafted, and no more tokens than the run's own",
            evidence="the server's counters before and after the run, and the tokens of its requests",
            remedy="let nobody else use the server meanwhile; else its counters are broken",
            metrics=frozenset(ACCEPTANCE),
        )
    ]


def silent_counters(timeout_s: float) -> Finding:
    """The page of the engine's counters did not come: what is read from it is not known of this run."""
    return Finding(
        check="engine_counters",
        status=Status.FAIL,
        policy="require",
        value=f"no answer within {timeout_s:g} s",
        expected="the counters, or the answer that there are none",
        evidence="GET /metrics before the run, or after it",
        remedy="look at what is in front of the server, or let it answer 404; each run waits for it once",
        metrics=frozenset(ACCEPTANCE),
    )


def _impossible(counts: Acceptance) -> str:
    if min(counts.steps, counts.accepted, counts.drafted) < 0:
        return f"a negative count: {counts.steps} steps, {counts.accepted} accepted, {counts.drafted} drafted"
    if counts.accepted > counts.drafted:
        return f"{counts.accepted} accepted of only {counts.drafted} drafted"
    return f"{counts.steps} steps with only {counts.drafted} drafted" if counts.steps > counts.drafted else ""


def _foreign(counts: Acceptance, records: Records) -> str:
    output = records.output_tokens
    if not counts.steps or (output < 0).any():
        return ""
    own = int(output.sum())
    beyond_the_end = len(records) * math.ceil(counts.drafted / counts.steps)
    counted = counts.steps + counts.accepted
    if counted <= own * (1 + FOREIGN_SHARE) + beyond_the_end:
        return ""
    return f"{counted} tokens counted (steps + accepted), {own} in the run's answers: somebody else used the server"


def _lag(client: ClientFacts, metrics: Mapping[str, float], gates: Sequence[Gate]) -> Finding:
    moved = {gate: _moved_by_lag(gate.metric.name, client, metrics) for gate in gates}
    wrong = {
        gate: share for gate, share in moved.items() if share is not None and share > gate.margin * LAG_SHARE_OF_MARGIN
    }
    measured = f"mean {client.lag_mean_ms:.2f} ms, p50 {client.lag_p50_ms:.2f} ms, p99 {client.lag_p99_ms:.2f} ms"
    effects = [
        f"{gate.metric.name} by {share:.1%} (allowed {gate.margin * LAG_SHARE_OF_MARGIN:.1%})"
        for gate, share in wrong.items()
    ]
    return Finding(
        check="client_lag",
        status=Status.FAIL if wrong else Status.PASS,
        policy="require",
        value=f"{measured}; could have moved {', '.join(effects)}" if effects else measured,
        expected=f"at most {LAG_SHARE_OF_MARGIN:.0%} of each margin",
        evidence=f"timer of {client.workers} client event loop(s), about every 10 ms",
        remedy=_SPREAD_THE_CLIENT,
        metrics=_names(wrong),
    )


def _moved_by_lag(name: str, client: ClientFacts, metrics: Mapping[str, float]) -> float | None:
    """The share by which lag could have moved a metric; None when the run has no value for it.

    A value of 0 (the median of gaps between chunks that came together) is moved by any.
    """
    own = any(part in name for part in ("_ttft_", "_e2el_", "_itl_")) and name not in _SUMS_OF_GAPS
    base_ms = metrics.get(name if own else "mean_e2el_ms")
    if base_ms is None:
        return None
    lag_ms = client.lag_p99_ms if name.startswith("p9") else client.lag_mean_ms
    if name.startswith("median_"):
        lag_ms = client.lag_p50_ms
    if base_ms == 0:
        return math.inf if lag_ms > 0 else 0.0
    return lag_ms / base_ms


def _cpu(client: ClientFacts, gates: Sequence[Gate]) -> Finding:
    return Finding(
        check="client_cpu",
        status=Status.FAIL if client.cpu_share > CPU_SHARE_LIMIT else Status.PASS,
        policy="require",
        value=f"busiest of {client.workers} worker(s): {client.cpu_share:.0%} of a core",
        expected=f"at most {CPU_SHARE_LIMIT:.0%}",
        evidence="getrusage over the measured window",
        remedy=_SPREAD_THE_CLIENT,
        metrics=_names(gates),
    )


def _coalescing(client: ClientFacts, metrics: Mapping[str, float], gates: Sequence[Gate]) -> Finding:
    """Whether chunks that shared a read were brought together by a late client.

    A server sends several at once under speculation, or when its own loop is late: that is what its users get. The
    client can be the cause only when it was late by the time between two chunks. Then gaps of 0 were never there, and
    what percentiles say of gaps is nonsense (seen: a median of 0.008 ms at one chunk every 20 ms). Sums of gaps stay.
    """
    share, pace_ms = client.coalesced_share, metrics.get("mean_itl_ms")
    expected = f"at most {COALESCED_LIMIT:.1%}, or a client that was not late by the time between two chunks"
    if share is None or pace_ms is None:
        return Finding(check="client_coalescing", status=Status.UNSUPPORTED, policy="require", expected=expected,
                       value="no request had two chunks")  # fmt: skip
    ours = share > COALESCED_LIMIT and client.lag_p99_ms >= pace_ms
    spoilt = [gate for gate in gates if "_itl_" in gate.metric.name and gate.metric.name not in _SUMS_OF_GAPS]
    return Finding(
        check="client_coalescing",
        status=Status.FAIL if ours and spoilt else Status.PASS,
        policy="require",
        value=f"{share:.1%} of the chunks came with the one before, one every {pace_ms:.2f} ms;"
        f" client lag p99 {client.lag_p99_ms:.2f} ms",
        expected=expected,
        evidence="stamps of all reads",
        remedy=_SPREAD_THE_CLIENT,
        metrics=_names(spoilt),
    )


def _schedule(lag_ms: float, gates: Sequence[Gate]) -> Finding:
    return Finding(
        check="client_schedule",
        status=Status.FAIL if lag_ms > SCHEDULE_LAG_LIMIT_MS else Status.PASS,
        policy="require",
        value=f"p99 of sent - scheduled: {lag_ms:.2f} ms",
        expected=f"at most {SCHEDULE_LAG_LIMIT_MS:g} ms",
        evidence="send times of all requests",
        remedy=_SPREAD_THE_CLIENT,
        metrics=_names(gates),
    )


def _names(gates: Mapping[Gate, float] | Sequence[Gate]) -> frozenset[str]:
    return frozenset(gate.metric.name for gate in gates)
