"""The one table of metrics: name, unit, direction, group, default margin and class noise.

Names and definitions are those of ``vllm bench serve --save-result`` where the meaning is the same. Class noise
(``prior_cv``) is the between-run CV assumed while a baseline is too small to tell: throughput 1.2 %, TPOT and E2EL
1.5 %, TTFT median 3 %, 99th percentiles 5 %, acceptance 1 % of a typical length; they are defaults of the simulation
study behind the verdict procedure, and measured noise outweighs them as a baseline grows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_llmperf.model.acceptance import AT_POSITIONS
from pytest_llmperf.model.metric import Metric

_SLOW, _STEADY = (0.10, 0.03), (0.05, 0.015)
"""Margin and class noise of means and medians: of what waits in queues, and of what averages over a request."""

_COUNTED = "; absent unless the tokens of every chunk are known"

_LATENCIES = {
    "ttft": ("arrival of the first chunk with tokens - send", *_SLOW),
    "tpot": ("(e2el - ttft) / (output tokens - 1), per request with more than one token", *_STEADY),
    "decode_tpot": (
        f"(e2el - ttft) / (output tokens - tokens of the first chunk), per request with several chunks{_COUNTED}",
        *_STEADY,
    ),
    "itl": ("gap between consecutive chunks with tokens, pooled over requests; chunks are not tokens", *_SLOW),
    "token_itl": (f"gap before a chunk / its tokens, once for each of them, pooled over requests{_COUNTED}", *_SLOW),
    "e2el": ("arrival of the last chunk with tokens - send", *_STEADY),
    "ttft_from_schedule": (
        "arrival of the first chunk with tokens - when the request was due; open loops only",
        *_SLOW,
    ),
    "e2el_from_schedule": (
        "arrival of the last chunk with tokens - when the request was due; open loops only",
        *_STEADY,
    ),
}
_STATISTICS = {
    "mean": "mean",
    "median": "median",
    "p90": "90th percentile",
    "p95": "95th percentile",
    "p99": "99th percentile",
}
_TAIL_MARGIN, _TAIL_CV = 0.15, 0.05


def _latencies() -> Iterator[Metric]:
    for name, (formula, margin, prior_cv) in _LATENCIES.items():
        for key, statistic in _STATISTICS.items():
            tail = key.startswith("p")
            yield Metric(
                name=f"{key}_{name}_ms",
                unit="ms",
                better="lower",
                group="latency",
                margin=_TAIL_MARGIN if tail else margin,
                prior_cv=_TAIL_CV if tail else prior_cv,
                formula=f"{statistic} of: {formula}",
            )


def _throughput(name: str, unit: str, formula: str, **other: Any) -> Metric:
    usual: dict[str, Any] = {"better": "higher", "group": "throughput", "margin": 0.05, "prior_cv": 0.012}
    return Metric(name=name, unit=unit, formula=formula, **{**usual, **other})


def _positions() -> Iterator[Metric]:
    for position, name in enumerate(AT_POSITIONS):
        yield Metric(
            name=name,
            unit="",
            better="higher",
            group="acceptance",
            scale="absolute",
            margin=0.02,
            prior_cv=0.01,
            timing=False,
            formula=f"accepted drafts at place {position} (the first is 0) / V, verify steps",
        )


_TABLE = (
    _throughput("output_throughput", "tok/s", "output tokens of successful requests / window"),
    _throughput("total_token_throughput", "tok/s", "(input + output) tokens of successful requests / window"),
    _throughput("request_throughput", "req/s", "successful requests / window"),
    _throughput("output_throughput_per_gpu", "tok/s", "output_throughput / GPUs of the suite's hardware"),
    _throughput(
        "steady_state_output_throughput",
        "tok/s",
        "output tokens / time, from when as many requests have had their first token as are ever in flight to the last"
        f" send, or to the first request's last token where that is later; absent where that is no time{_COUNTED}",
    ),
    _throughput(
        "max_output_tokens_per_s",
        "tok/s",
        "most output tokens within any one second, or output_throughput where that is more; absent for windows below"
        f" one second{_COUNTED}",
        margin=_TAIL_MARGIN,
        prior_cv=_TAIL_CV,
    ),
    _throughput("tok_s_per_user", "tok/s", "mean over requests of output tokens / e2el (prefill included)"),
    _throughput("decode_tok_s_per_user", "tok/s", "mean over requests of 1 / tpot (prefill excluded)"),
    _throughput(
        "request_goodput",
        "req/s",
        "successful requests within every limit of slo / window; a single token keeps every limit of TPOT",
        margin=0.10,
        prior_cv=0.03,
    ),
    _throughput(
        "slo_attainment",
        "",
        "successful requests within every limit of slo / all requests of the run, failed ones included",
        margin=0.02,
        prior_cv=0.01,
        scale="absolute",
    ),
    _throughput(
        "max_concurrent_requests", "req", "most requests between send and end at any moment, failed ones included"
    ),
    _throughput("mean_concurrency", "req", "sum of (end - send) / window, over all requests, failed ones included"),
    _throughput(
        "tokens_per_joule", "tok/J", "output tokens of successful requests / energy_j; absent where that is not known"
    ),
    _throughput(
        "energy_j",
        "J",
        "what the suite's GPUs took, by their energy counters just before the window and just after it; absent where"
        " one of them does not say",
        better="lower",
        prior_cv=0.015,
    ),
    *_latencies(),
    Metric(
        name="acceptance_length",
        unit="tok/step",
        better="higher",
        group="acceptance",
        scale="absolute",
        margin=0.03,
        prior_cv=0.02,
        timing=False,
        formula="1 + A/V: accepted drafts over verify steps, plus the bonus token",
    ),
    Metric(
        name="acceptance_rate",
        unit="",
        better="higher",
        group="acceptance",
        scale="absolute",
        margin=0.02,
        prior_cv=0.01,
        timing=False,
        formula="A/T: accepted drafts over drafted tokens",
    ),
    *_positions(),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}
