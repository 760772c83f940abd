from __future__ import annotations

from pathlib import Path

import pytest

from pytest_llmperf.engines.prefix_cache import prefix_hits
from pytest_llmperf.model.counters import Counters
from pytest_llmperf.model.prefix_hits import PrefixHits
from pytest_llmperf.telemetry.prometheus import parse

METRICS = Path(__file__).parents[2] / "data" / "metrics"


def recorded(name: str) -> Counters:
    return parse((METRICS / f"{name}.txt").read_text())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vllm-0.32.0_no_speculation", PrefixHits(looked_up=617, found=0)),
        ("vllm-0.32.0_mtp_damaged30", PrefixHits(looked_up=0, found=0)),  # enable_prefix_caching="False"
        ("sglang-0.5.16_no_speculation", PrefixHits(looked_up=453881, found=235074)),
        ("xllamacpp-2026.10_no_speculation", PrefixHits(looked_up=189 + 555, found=555)),
    ],
)
def test_counts_of_a_server_since_its_start(name: str, expected: PrefixHits) -> None:
    assert prefix_hits({}, recorded(name)) == expected


def vllm(looked_up: float, found: float, *, engine: int = 0, **more: float) -> Counters:
    own = {"queries": looked_up, "hits": found}
    labels = f'{{engine="{engine}",model_name="m"}}'
    return {f"vllm:prefix_cache_{name}_total{labels}": count for name, count in own.items()} | {
        f"vllm:{name}{labels}": count for name, count in more.items()
    }


def test_only_the_window_counts_over_all_engines_of_a_server() -> None:
    before = {**vllm(1000, 400), **vllm(500, 0, engine=1)}
    after = {**vllm(3000, 1400), **vllm(1500, 10, engine=1)}
    assert prefix_hits(before, after) == PrefixHits(looked_up=3000, found=1010)
    assert prefix_hits(after, after) == PrefixHits(looked_up=0, found=0)


def test_what_vllm_found_in_a_shared_cache_was_not_computed_either() -> None:
    after = vllm(1000, 100, external_prefix_cache_hits_total=300)
    assert prefix_hits({}, after) == PrefixHits(looked_up=1000, found=400)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({}, {"vllm:prefix_cache_hits_total": 5.0}),
        ({}, {"sglang:prompt_tokens_total": 5.0}),  # its counter of hits appears with the first one
        (vllm(1000, 400), vllm(100, 40)),  # a restart
        ({}, vllm(float("nan"), 0)),
        ({}, vllm(float("inf"), 0)),
    ],
)
def test_what_is_no_count_is_unknown(before: Counters, after: Counters) -> None:
    assert prefix_hits(before, after) is None
