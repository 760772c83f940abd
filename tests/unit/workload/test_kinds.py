"""How each kind makes its prompts, and that no run repeats another's."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.errors import DataError, UsageError
from pytest_llmperf.model.case import workload_digest
from pytest_llmperf.model.plan import Plan
from pytest_llmperf.model.suite import DataFile, Lengths, Load, Workload
from pytest_llmperf.workload import Deal, Entry, Material, Vocabulary, plan
from pytest_llmperf.workload.stream import below
from pytest_llmperf.workload.token_ids import distinct_ids

BURST = Load(kind="burst")
IDS = Workload(name="w", kind="token-ids", requests=32, input_tokens=16, output_tokens=8)
SHARED = replace(IDS, kind="shared-prefix", prefix_tokens=10, groups=3)
CUSTOM = Workload(name="w", kind="custom", requests=4, output_tokens=8, data=DataFile(path="x", sha256="0"))
VOCABULARY = Material(vocabulary=Vocabulary(100, frozenset({0, 1, 50})))
LINES = Material(entries=[Entry(prompt=f"line {i}", where=f"x:{i + 1}") for i in range(20)])


def made(workload: Workload, material: Material = VOCABULARY, seed: int = 1, **more: Any) -> Plan:
    return plan(workload, BURST, seed=seed, model_id="m", material=material, **more)


def prompts(found: Plan) -> list[Any]:
    return [json.loads(request.body)["prompt"] for request in found.requests]


def test_token_ids_are_sent_as_such_with_their_exact_length_and_without_special_ones() -> None:
    """vllm#10847, #24591, #13333, PR#24937: lengths that are off, because text does not come back as its tokens."""
    found = made(IDS)
    assert [len(prompt) for prompt in prompts(found)] == [16] * 32
    assert [request.input_tokens for request in found.requests] == [16] * 32
    sent = {token for prompt in prompts(found) for token in prompt}
    assert sent == set(range(100)) - {0, 1, 50}


@pytest.mark.parametrize("workload", [IDS, SHARED, replace(IDS, kind="words")], ids=lambda workload: workload.kind)
def test_no_prompt_is_shared_by_repeats_warm_ups_and_loads(workload: Workload) -> None:
    """vllm#52884, #54227, PR#10753, inference-perf PR#340: the same seed, or prompt, again, and a warm prefix cache."""
    plans = [
        made(workload),
        made(workload, seed=2),
        made(replace(workload, requests=8)),
        plan(workload, Load(kind="concurrency", value=4), seed=1, model_id="m", material=VOCABULARY),
    ]
    sets = [{str(prompt) for prompt in prompts(found)} for found in plans]
    assert [len(each) for each in sets] == [32, 32, 8, 32]
    assert len(set.union(*sets)) == 104


def test_the_prefixes_of_two_runs_differ_too() -> None:
    first, second = ({str(prompt[:10]) for prompt in prompts(made(SHARED, seed=seed))} for seed in (1, 2))
    assert first.isdisjoint(second)


def test_a_group_shares_its_prefix_and_nothing_more() -> None:
    found = prompts(made(SHARED))
    assert all(len(prompt) == 16 for prompt in found)
    assert len({tuple(prompt[:10]) for prompt in found}) == 3
    assert all(prompt[:10] == found[i % 3][:10] for i, prompt in enumerate(found))
    assert len({tuple(prompt[10:]) for prompt in found}) == 32


def test_what_a_seed_means_never_changes() -> None:
    numbers = below(1000, "key")
    assert [next(numbers) for _ in range(6)] == [407, 645, 357, 944, 686, 83]
    assert distinct_ids([4, 2], range(100), "seed") == [[43, 95, 94, 96], [84, 67]]


def test_the_same_token_ids_in_another_process() -> None:
    script = f"""
from pytest_llmperf.model.suite import *
from pytest_llmperf.workload import *
print(plan({IDS!r}, {BURST!r}, seed=7, model_id="m", material={VOCABULARY!r}).digest)
"""
    other = subprocess.check_output([sys.executable, "-c", script], text=True, env={"PYTHONHASHSEED": "1"}).strip()
    assert other == made(IDS, seed=7).digest


@given(size=st.integers(2, 20), length=st.integers(1, 4), count=st.integers(1, 50), seed=st.text(max_size=3))
def test_token_ids_are_distinct_or_an_error(size: int, length: int, count: int, seed: str) -> None:
    if count > size**length:
        with pytest.raises(UsageError, match="different prompts"):
            distinct_ids([length] * count, range(size), seed)
        return
    found = distinct_ids([length] * count, range(size), seed)
    assert len({tuple(prompt) for prompt in found}) == count
    assert all(len(prompt) == length and set(prompt) <= set(range(size)) for prompt in found)


@pytest.mark.parametrize("kind", ["token-ids", "words", "shared-prefix"])
def test_every_run_asks_for_the_same_lengths(kind: Any) -> None:
    workload = replace(
        SHARED, kind=kind, input_tokens=Lengths(min=12, max=20), output_tokens=Lengths(min=1, max=99, mean=20, stdev=9)
    )
    first, second = made(workload), made(workload, seed=2)
    asked = [(request.input_tokens, request.output_tokens) for request in first.requests]
    assert asked == [(request.input_tokens, request.output_tokens) for request in second.requests]
    assert len(set(asked)) > 16
    words = [len(prompt.split()) if isinstance(prompt, str) else len(prompt) for prompt in prompts(first)]
    assert words == [length for length, _ in asked]
    assert [json.loads(request.body)["max_tokens"] for request in first.requests] == [length for _, length in asked]


def test_a_file_is_dealt_out_from_the_top_and_to_warm_ups_from_the_bottom() -> None:
    runs = [Deal(1), Deal(1, 1, 4), Deal(1, -1), Deal(1, -2, 4)]
    found = [[int(prompt.split()[1]) for prompt in prompts(made(CUSTOM, LINES, place=place))] for place in runs]
    assert found == [[0, 1, 2, 3], [4, 5, 6, 7], [19, 18, 17, 16], [15, 14, 13, 12]]


def test_a_file_that_is_used_up_starts_again() -> None:
    found = prompts(made(CUSTOM, LINES, place=Deal(1, 9, 18)))
    assert found == ["line 18", "line 19", "line 0", "line 1"]


def test_a_file_with_too_few_prompts_is_an_error_unless_they_may_repeat() -> None:
    with pytest.raises(DataError, match="20 of 20 prompts are fit, and requests: 21 asks for more"):
        made(replace(CUSTOM, requests=21), LINES)
    found = prompts(made(replace(CUSTOM, requests=25, oversample=True), LINES))
    assert len(found) == 25
    assert len(set(found)) == 20


def test_a_conversation_has_one_start_and_turns_that_follow_it() -> None:
    workload = replace(IDS, kind="words", requests=5, api="chat", turns=3)
    starts = {"request_rate": [500_000_000, None, None, 1_000_000_000, None], "burst": [0, None, None, 0, None]}
    for kind, times in starts.items():
        load = Load(kind=kind, value=2.0 if kind == "request_rate" else None, burstiness="constant")  # type: ignore[arg-type]
        found = plan(workload, load, seed=1, model_id="m")
        assert [request.at_ns for request in found.requests] == times
        assert found.turns == 3


def test_a_line_decides_what_it_asks_for() -> None:
    entries = [Entry(prompt="a", output_tokens=3), Entry(prompt="b")]
    found = made(replace(CUSTOM, requests=2), Material(entries=entries))
    assert [request.output_tokens for request in found.requests] == [3, 8]
    assert [request.input_tokens for request in found.requests] == [None, None], "only the engine can tell"


def test_messages_go_through_as_they_are() -> None:
    chat = ({"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"})
    material = Material(entries=[Entry(messages=chat, where="x:1")])
    [request] = made(replace(CUSTOM, requests=1, api="chat"), material).requests
    assert json.loads(request.body)["messages"] == list(chat)
    with pytest.raises(DataError, match=r"^x:1: messages need api: chat"):
        made(replace(CUSTOM, requests=1), material)


def test_a_line_without_a_length_needs_one_of_the_workload() -> None:
    with pytest.raises(DataError, match=r"^x:1: no output_tokens; write it there, or in the workload"):
        made(replace(CUSTOM, output_tokens=None), LINES)


DIFFERENT: dict[str, Workload] = {
    "kind": replace(IDS, kind="words"),
    "lengths": replace(IDS, input_tokens=Lengths(min=16, max=16)),
    "vocab": replace(IDS, vocab=100),
    "prefix_tokens": replace(IDS, prefix_tokens=4),
    "groups": replace(IDS, groups=2),
    "range_ratio": replace(IDS, range_ratio=0.5),
    "rules": replace(IDS, rules="vllm-0.11.0"),
    "data": replace(IDS, data=DataFile(path="x", sha256="0")),
    "other data": replace(IDS, data=DataFile(path="x", sha256="1")),
    "unread data": replace(IDS, data=DataFile(path="x")),
    "oversample": replace(IDS, oversample=True),
    "turns": replace(IDS, turns=2),
    "expect_prefix_hits": replace(IDS, expect_prefix_hits=(0.0, 0.5)),
}


def test_every_key_is_part_of_what_is_asked() -> None:
    digests = [workload_digest(workload, BURST) for workload in [IDS, *DIFFERENT.values()]]
    assert len(set(digests)) == len(digests)


def test_where_a_file_is_makes_no_difference() -> None:
    here, there = (replace(IDS, data=DataFile(path=path, sha256="0")) for path in ("/a", "/b"))
    assert workload_digest(here, BURST) == workload_digest(there, BURST)


def test_keys_that_are_not_used_leave_digests_alone() -> None:
    """Baselines name this digest: a new key with a default must not make them incomparable."""
    words = Workload(name="words", kind="words", requests=32, input_tokens=64, output_tokens=128)
    digest = workload_digest(words, Load(kind="concurrency", value=4.0))
    assert digest == "sha256:8b400ef4b976708fdf9dffc25b7ddda926a4459fbd42b80a7ada6f96cd4d9f7a"
