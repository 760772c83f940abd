"""The one table of metrics: name, unit, direction, group, default margin and class noise.

Names and definitions are those of ``vllm bench serve --save-result`` where the meaning is the same. Class noise
(``prior_cv``) is the between-run CV assumed while a baseline is too small to tell: throughput 1.2 %, TPOT and E2EL
1.5 %, TTFT median 3 %, 99th percentiles 5 %, acceptance 1 % of a typical length; they are defaults of the simulation
study behind the verdict procedure, and measured noise outweighs them as a baseline grows.
"""

from __future__ import annotations

from collections.abc import Iterator

from pytest_llmperf.model.metric import Metric

_LATENCIES = {
    "ttft": ("arrival of the first chunk with text - send", 0.10, 0.03),
    "tpot": ("(e2el - ttft) / (output tokens - 1), per request with more than one token", 0.05, 0.015),
    "itl": ("gap between consecutive chunks, pooled over requests; chunks are not tokens", 0.10, 0.03),
    "e2el": ("arrival of the last chunk with text - send", 0.05, 0.015),
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


def _throughput(name: str, unit: str, formula: str) -> Metric:
    return Metric(
        name=name,
        unit=unit,
        better="higher",
        group="throughput",
        margin=0.05,
        prior_cv=0.012,
        formula=formula,
    )


_TABLE = (
    _throughput("output_throughput", "tok/s", "output tokens of successful requests / window"),
    _throughput("total_token_throughput", "tok/s", "(input + output) tokens of successful requests / window"),
    _throughput("request_throughput", "req/s", "successful requests / window"),
    _throughput("tok_s_per_user", "tok/s", "mean over requests of output tokens / e2el (prefill included)"),
    _throughput("decode_tok_s_per_user", "tok/s", "mean over requests of 1 / tpot (prefill excluded)"),
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
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}
