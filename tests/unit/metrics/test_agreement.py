"""The same streams, read by the published formulas of ``vllm bench serve`` written down again here, and by ours.

The formulas: TTFT is the arrival of the first chunk - send; ITL the gaps between arrivals of chunks, pooled; latency
the arrival of the last chunk - send; TPOT (latency - TTFT) / (tokens - 1) of requests with more than one; output tokens
are ``usage.completion_tokens``; means, and numpy's linear percentiles.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from statistics import fmean, median
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_llmperf import metrics
from pytest_llmperf.load.job import JobRequest
from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.row import Row, read_row
from tests.unit.load.responses import RECORDED, a_chunk_an_event, counted, event_ends, received

MS = 1_000_000

Chunk = dict[str, Any]


@dataclass
class Measured:
    """One request, as the formulas see it; milliseconds after its send."""

    arrivals: list[int] = field(default_factory=list)
    tokens: int = 0
    counts: list[int] = field(default_factory=list)

    @property
    def gaps(self) -> list[int]:
        return [later - earlier for earlier, later in pairwise(self.arrivals)]


def chunks_of(events: Sequence[bytes]) -> Iterator[tuple[int, Chunk]]:
    for number, event in enumerate(events):
        if event.startswith(b"data: {"):
            yield number, json.loads(event.removeprefix(b"data: "))


def by_the_formulas(events: Sequence[bytes], times_ms: Sequence[int], bears: Callable[[Chunk], bool]) -> Measured:
    found, before = Measured(), 0
    for number, chunk in chunks_of(events):
        total = (chunk.get("usage") or {}).get("completion_tokens")
        if chunk["choices"] and bears(chunk["choices"][0]):
            found.arrivals.append(times_ms[number])
            if total is not None:
                found.counts.append(total - before)
                before = total
        if total is not None:
            found.tokens = total
    return found


def every(choice: Chunk) -> bool:
    return True


def with_words(choice: Chunk) -> bool:
    """Of version 0.33 for chat; and no chunk that only gives the finish reason, which our rule leaves out."""
    return bool(choice.get("text") or (choice.get("delta") or {}).get("content"))


RULES = {
    "vllm-0.32.0_completions": every,
    "vllm-0.32.0_mtp_completions": every,
    "sglang-0.5.16_completions": every,
    "sglang-0.5.16_mtp_completions": every,
    "vllm-0.32.0_chat": with_words,
    "xllamacpp-2026.10_completions": with_words,
    "xllamacpp-2026.10_chat": with_words,
    "transformers_chat": with_words,
}
"""For completions vLLM's rule is every chunk with a choice: nothing is taken from it or added to it."""


def both(name: str, gaps_ms: Sequence[int], stream: bytes | None = None) -> tuple[Measured, Row]:
    """A recorded stream, or one made of it, whose k-th event comes ``gaps_ms[k]`` after the one before it, modulo."""
    stream = stream or RECORDED[name]
    events = stream.split(b"\n\n")[:-1]
    times = list(accumulate(gaps_ms[number % len(gaps_ms)] for number in range(len(events))))
    raw, brought = a_chunk_an_event(stream)
    exchange = received(raw, [*(brought[end - 1] for end in event_ends(stream)), len(raw)])
    exchange.stamps = [time * MS for time in (*times, times[-1])]
    request = JobRequest(index=0, body="{}", at_ns=None, planned_input_tokens=-1, asked_tokens=-1)
    return by_the_formulas(events, times, RULES[name]), read_row(request, exchange, exact_output=False)


def percentile(sample: Sequence[float], p: float) -> float:
    """numpy's, by its definition: linear between the two nearest ranks."""
    ordered, rank = sorted(sample), p / 100 * (len(sample) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (rank - low) * (ordered[high] - ordered[low])


def published(measured: Sequence[Measured], window_s: float) -> dict[str, float]:
    samples: dict[str, list[float]] = {
        "ttft": [each.arrivals[0] for each in measured],
        "itl": [gap for each in measured for gap in each.gaps],
        "e2el": [each.arrivals[-1] for each in measured],
        "tpot": [(each.arrivals[-1] - each.arrivals[0]) / (each.tokens - 1) for each in measured if each.tokens > 1],
    }
    found = {"output_throughput": sum(each.tokens for each in measured) / window_s}
    for name, sample in samples.items():
        found |= {f"mean_{name}_ms": fmean(sample), f"median_{name}_ms": median(sample)}
        found |= {f"p{p}_{name}_ms": percentile(sample, p) for p in (90, 95, 99)}
    return found


GAPS = st.lists(st.integers(1, 400), min_size=1, max_size=40)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(sorted(RULES)), GAPS), min_size=1, max_size=5))
def test_every_value_is_that_of_the_published_formulas(requests: list[tuple[str, list[int]]]) -> None:
    pairs = [both(name, gaps) for name, gaps in requests]
    window_ms = 1 + max(measured.arrivals[-1] for measured, _ in pairs)
    ours = metrics.compute(records_of(row for _, row in pairs), (0, window_ms * MS), None)
    expected = published([measured for measured, _ in pairs], window_ms / 1e3)
    assert {name: ours[name] for name in expected} == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", RULES)
def test_tokens_and_chunks_are_exact(name: str) -> None:
    measured, row = both(name, [20])
    assert (row.reason, row.output_tokens, len(row.chunk_ns)) == ("", measured.tokens, len(measured.arrivals))
    if measured.counts:
        assert list(row.chunk_tokens) == measured.counts


@settings(deadline=None, max_examples=60)
@given(name=st.sampled_from(sorted(RULES)), gaps=GAPS)
def test_a_ttft_and_its_gaps_are_the_whole_latency(name: str, gaps: list[int]) -> None:
    """vllm#7242, llmperf#99: a TTFT among the ITLs makes them too long by it."""
    _, row = both(name, gaps)
    ours = metrics.compute(records_of([row]), (0, MS), None)
    decoding = ours["mean_itl_ms"] * (len(row.chunk_ns) - 1)
    assert ours["mean_ttft_ms"] + decoding == pytest.approx(ours["mean_e2el_ms"])


@settings(deadline=None, max_examples=60)
@given(gaps=GAPS, by_ids=st.booleans())
def test_recorded_speculation_has_the_gap_of_every_token(gaps: list[int], by_ids: bool) -> None:
    """vLLM's MTP stream, whose words are its tokens: the tokens of a chunk share its gap, and nothing is left over."""
    name = "vllm-0.32.0_mtp_completions"
    stream, words = counted(RECORDED[name], "token_ids" if by_ids else "usage")
    measured, row = both(name, gaps, stream)
    expected = [gap / count for gap, count in zip(measured.gaps, words[1:], strict=True) for _ in range(count)]
    ours = metrics.compute(records_of([row]), (0, MS), None)
    assert ours["mean_token_itl_ms"] == pytest.approx(fmean(expected))
    assert ours["p99_token_itl_ms"] == pytest.approx(percentile(expected, 99))
    assert sum(expected) == pytest.approx(measured.arrivals[-1] - measured.arrivals[0])
    assert ours["mean_decode_tpot_ms"] == pytest.approx(sum(expected) / (sum(words) - words[0]))
