"""The formulas behind the metric table; each gives one number of one run.

Latencies are taken over successful requests, in milliseconds; percentiles interpolate linearly. What cannot be
computed is absent: an unknown token count, an empty sample, and a time of zero, which means that the client's stamps
could not tell two events apart and which no ratio can be taken of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain

import numpy as np

from pytest_llmperf.metrics import samples
from pytest_llmperf.metrics.concurrency import max_in_flight, mean_in_flight
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.metrics.goodput import good_requests
from pytest_llmperf.metrics.pace import peak_tokens_per_s, steady_tokens_per_s
from pytest_llmperf.metrics.samples import Floats
from pytest_llmperf.model.acceptance import AT_POSITIONS
from pytest_llmperf.model.records import NEVER, Int64, Records
from pytest_llmperf.model.run import Acceptance
from pytest_llmperf.model.slo import GOODPUT, Slo

_NS_PER_S = 1e9

_PERCENTILES = {"median": 50, "p90": 90, "p95": 95, "p99": 99}

_LATENCIES: dict[str, Callable[[Records], Floats]] = {
    "ttft": samples.ttft_ms,
    "tpot": samples.tpot_ms,
    "decode_tpot": samples.decode_tpot_ms,
    "itl": samples.itl_ms,
    "token_itl": samples.token_itl_ms,
    "e2el": samples.e2el_ms,
    "ttft_from_schedule": samples.ttft_from_schedule_ms,
    "e2el_from_schedule": samples.e2el_from_schedule_ms,
}


def compute(
    records: Records,
    window_ns: tuple[int, int],
    acceptance: Acceptance | None,
    *,
    slo: Slo | None = None,
    gpus: int = 0,
    energy_j: float | None = None,
) -> dict[str, float]:
    """Every metric of ``definitions.METRICS`` that this run has a value for, by name.

    Args:
        records: what happened to each request; failed ones count in no latency and no throughput.
        window_ns: first send to end of the last stream, ramp-up and drain included.
        acceptance: counts of speculation over the same window.
        slo: the limits of goodput, None where there are none.
        gpus: how many serve the model, 0 where that is not known.
        energy_j: what they took over the window; None where it is not known.
    """
    found: Mapping[str, float | None] = dict(
        chain(
            _throughputs(records, window_ns, gpus).items(),
            _goodput(records, window_ns, slo).items(),
            _concurrency(records, window_ns).items(),
            _energy(records, energy_j).items(),
            _latencies(records).items(),
            _speculation(acceptance).items(),
        )
    )
    return {name: float(value) for name, value in found.items() if value is not None and _is_value(name, value)}


def _is_value(name: str, value: float) -> bool:
    """A goodput or a share of 0 is a finding; a latency or a throughput of 0 is a broken measurement."""
    return bool(np.isfinite(value)) and (value > 0 or METRICS[name].scale == "absolute" or name in GOODPUT)


def _throughputs(records: Records, window_ns: tuple[int, int], gpus: int) -> dict[str, float | None]:
    ok, window_s = records.ok, _window_s(window_ns)
    if not ok.any() or window_s <= 0:
        return {}
    values: dict[str, float | None] = {"request_throughput": np.count_nonzero(ok) / window_s}
    output, sent = _total(records.output_tokens[ok]), _total(records.input_tokens[ok])
    if output is None:
        return values
    mean_rate, peak = output / window_s, peak_tokens_per_s(records)
    return values | {
        "output_throughput": mean_rate,
        "total_token_throughput": None if sent is None else (sent + output) / window_s,
        "output_throughput_per_gpu": mean_rate / gpus if gpus else None,
        "steady_state_output_throughput": steady_tokens_per_s(records),
        "max_output_tokens_per_s": None if peak is None or window_s < 1 else max(peak, mean_rate),
        "tok_s_per_user": _mean_rate(records.output_tokens[ok], samples.e2el_ms(records)),
        "decode_tok_s_per_user": _mean_rate(np.int64(1), samples.tpot_ms(records)),
    }


def _goodput(records: Records, window_ns: tuple[int, int], slo: Slo | None) -> dict[str, float | None]:
    window_s = _window_s(window_ns)
    if slo is None or len(records) == 0 or window_s <= 0:
        return {}
    good = good_requests(records, slo)
    if good is None:
        return {}
    return {"request_goodput": good / window_s, "slo_attainment": good / len(records)}


def _concurrency(records: Records, window_ns: tuple[int, int]) -> dict[str, float | None]:
    if _window_s(window_ns) <= 0:
        return {}
    return {
        "max_concurrent_requests": max_in_flight(records),
        "mean_concurrency": mean_in_flight(records, window_ns),
    }


def _energy(records: Records, energy_j: float | None) -> dict[str, float | None]:
    if energy_j is None or energy_j <= 0:
        return {}
    output = _total(records.output_tokens[records.ok])
    return {"energy_j": energy_j, "tokens_per_joule": None if output is None else output / energy_j}


def _latencies(records: Records) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, sample_of in _LATENCIES.items():
        sample = sample_of(records)
        if len(sample):
            found = np.percentile(sample, list(_PERCENTILES.values()))
            statistics = {"mean": sample.mean(), **dict(zip(_PERCENTILES, found, strict=True))}
            values |= {f"{key}_{name}_ms": value for key, value in statistics.items()}
    return values


def _speculation(acceptance: Acceptance | None) -> dict[str, float]:
    if acceptance is None or acceptance.steps == 0:
        return {}
    values = {"acceptance_length": 1 + acceptance.accepted / acceptance.steps}
    if acceptance.drafted:
        values["acceptance_rate"] = acceptance.accepted / acceptance.drafted
    at = zip(AT_POSITIONS, acceptance.per_position, strict=False)
    return values | {name: count / acceptance.steps for name, count in at}


def _window_s(window_ns: tuple[int, int]) -> float:
    return (window_ns[1] - window_ns[0]) / _NS_PER_S


def _total(tokens: Int64) -> int | None:
    """Sum of counts, None when one of them is unknown."""
    return None if (tokens == NEVER).any() else int(tokens.sum())


def _mean_rate(tokens: Int64 | np.int64, times_ms: Floats) -> float | None:
    """Tokens per second, averaged over requests."""
    if not len(times_ms) or not times_ms.all():
        return None
    return float(np.mean(tokens / times_ms)) * 1e3
