"""Prompts of repeats, of warm-ups and of workers are never the same: real plans, dealt as a session deals them.

vllm#52884 and #54227: up to 86 % more throughput from a cache that the same seed had warmed; vllm#10753: identical
prompts; inference-perf#340: workers with the same seed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.load.shares import split
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.plan import Plan
from pytest_llmperf.model.suite import DataFile, Load, Workload
from pytest_llmperf.pipeline.campaign import Campaign
from pytest_llmperf.workload import Entry, Material, Vocabulary, plan

IDS = Workload(name="w", kind="token-ids", requests=20, input_tokens=32, output_tokens=8)
FILE = DataFile(path="x", sha256="0")
WORKLOADS = {
    "token-ids": IDS,
    "words": replace(IDS, kind="words"),
    "conversations": replace(IDS, kind="words", api="chat", turns=3),
    "shared-prefix": replace(IDS, kind="shared-prefix", prefix_tokens=16, groups=4),
    "custom": replace(IDS, kind="custom", data=FILE),
    "sharegpt": replace(IDS, kind="sharegpt", data=FILE, rules="vllm-0.32.0", output_tokens=None),
    "random": replace(IDS, kind="random", rules="vllm-0.32.0"),
    "random of 0.11.0": replace(IDS, kind="random", rules="vllm-0.11.0"),
}


class Numbers:
    """A tokenizer whose tokens are numbers, of a vocabulary as large as those of today's models."""

    vocabulary = Vocabulary(128_000)
    special_per_text = 0

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def count(self, text: str) -> int:
        return len(text.split())

    def decode(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens))


MATERIAL = Material(
    vocabulary=Vocabulary(128_000),
    tokenizer=Numbers(),
    entries=[Entry(prompt=f"the line of number {i}", answer="which has an answer") for i in range(500)],
)
LOADS = [Load(kind="concurrency", value=4), Load(kind="burst"), Load(kind="request_rate", value=9.0)]


def session(tmp_path: Path, workload: Workload) -> list[Plan]:
    """Two warm-ups and three measured runs under each of three loads, on one server."""
    campaign = Campaign(
        baselines=tmp_path, save=tmp_path, seed=7, accept="none", why="", endpoint=None, arguments="", family=1,
        show=lambda _: None,
    )  # fmt: skip
    short = replace(workload, requests=8)
    runs = [(short, True), (short, True), *[(workload, False)] * 3]
    return [
        plan(
            each, load, seed=campaign._next_seed("warmup" if warm_up else "candidate"), model_id="m", material=MATERIAL,
            place=campaign.dealer.deal("server 1", each, warm_up=warm_up),
        )
        for load in LOADS
        for each, warm_up in runs
    ]  # fmt: skip


def prompts(found: Plan) -> list[str]:
    bodies: list[dict[str, Any]] = [json.loads(request.body) for request in found.requests]
    return [str(body.get("prompt") or body["messages"]) for body in bodies]


@pytest.mark.parametrize("kind", WORKLOADS)
def test_no_prompt_is_sent_to_a_server_twice(kind: str, tmp_path: Path) -> None:
    sent = Counter(prompt for found in session(tmp_path, WORKLOADS[kind]) for prompt in prompts(found))
    assert sent.total() == len(LOADS) * (2 * 8 + 3 * 20)
    assert max(sent.values()) == 1


def test_prefixes_are_shared_within_a_run_alone(tmp_path: Path) -> None:
    plans = session(tmp_path, WORKLOADS["shared-prefix"])
    prefixes = [{tuple(json.loads(request.body)["prompt"][:16]) for request in found.requests} for found in plans]
    assert all(len(own) == 4 for own in prefixes)
    assert len(set.union(*prefixes)) == 4 * len(plans)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_workers_deal_out_the_prompts_of_one_plan(kind: str, tmp_path: Path) -> None:
    found = session(tmp_path, WORKLOADS[kind])[-1]
    jobs = split(found, Endpoint(url="http://h:1", model="m"), tmp_path, workers=3, request_timeout_s=9)
    assert len(jobs) == 3
    assert Counter(request.body.encode() for job in jobs for request in job.requests) == Counter(
        request.body for request in found.requests
    )


def test_another_session_has_other_prompts(tmp_path: Path) -> None:
    """Unless the same ``--llmperf-seed`` asks for the same."""

    def first(seed: int) -> set[str]:
        campaign = Campaign(
            baselines=tmp_path, save=tmp_path, seed=seed, accept="none", why="", endpoint=None, arguments="", family=1,
            show=lambda _: None,
        )  # fmt: skip
        return set(prompts(plan(IDS, LOADS[0], seed=campaign._next_seed("candidate"), model_id="m", material=MATERIAL)))

    assert first(1).isdisjoint(first(2))
    assert first(1) == first(1)
