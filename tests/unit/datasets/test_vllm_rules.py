"""Prompts are those of vLLM's own code, which made the golden files; see tests/data/README.md."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_llmperf.datasets.entries import conversations
from pytest_llmperf.datasets.tokenizer import read_tokenizer
from pytest_llmperf.errors import DataError
from pytest_llmperf.model.plan import Plan
from pytest_llmperf.model.suite import DataFile, Load, Rules, Workload
from pytest_llmperf.workload import Deal, Material, Tokenizer, plan

pytest.importorskip("tokenizers")

DATA = Path(__file__).parents[2] / "data"
SHAREGPT = DATA / "workloads" / "sharegpt.json"
VERSIONS: tuple[Rules, ...] = ("vllm-0.11.0", "vllm-0.32.0")
GOLDEN = {rules: json.loads((DATA / "workloads" / f"{rules}.json").read_text()) for rules in VERSIONS}


def cases(kind: str) -> list[Any]:
    return [
        pytest.param(rules, case, id=f"{rules}-{case['tokenizer']}-{case['seed']}")
        for rules in VERSIONS
        for case in GOLDEN[rules][kind]
    ]


def tokenizer(rules: Rules, name: str) -> Tokenizer:
    return read_tokenizer(DATA / "tokenizers" / name, rules)


def sent(made: Plan) -> list[list[Any]]:
    return [
        [json.loads(request.body)["prompt"], request.input_tokens, request.output_tokens] for request in made.requests
    ]


def made(workload: Workload, material: Material, place: Deal) -> Plan:
    return plan(workload, Load(kind="burst"), seed=99, model_id="m", material=material, place=place)


@pytest.mark.parametrize(("rules", "case"), cases("random"))
def test_random_prompts_are_vllms(rules: Rules, case: dict[str, Any]) -> None:
    workload = Workload(
        name="w",
        kind="random",
        requests=case["n"],
        input_tokens=case["input_len"],
        output_tokens=case["output_len"],
        range_ratio=case["range_ratio"],
        prefix_tokens=case["prefix_len"],
        rules=rules,
    )
    found = made(workload, Material(tokenizer=tokenizer(rules, case["tokenizer"])), Deal(case["seed"]))
    assert sent(found) == case["requests"]
    assert found.seed == case["seed"], "what vLLM's --seed must be"


def sharegpt(case: dict[str, Any], **more: Any) -> Workload:
    return Workload(
        name="w",
        kind="sharegpt",
        requests=case["n"],
        output_tokens=case["output_len"],
        data=DataFile(path=str(SHAREGPT)),
        oversample=case["oversample"],
        **more,
    )


def conversations_for(rules: Rules, name: str) -> Material:
    entries = conversations(SHAREGPT.read_bytes(), "sharegpt.json")
    return Material(tokenizer=tokenizer(rules, name), entries=entries)


@pytest.mark.parametrize(("rules", "case"), cases("sharegpt"))
def test_sharegpt_prompts_are_vllms(rules: Rules, case: dict[str, Any]) -> None:
    material = conversations_for(rules, case["tokenizer"])
    found = sent(made(sharegpt(case, rules=rules), material, Deal(case["seed"])))
    assert [[hashlib.sha256(text.encode()).hexdigest()[:16], *lengths] for text, *lengths in found] == case["requests"]


@pytest.mark.parametrize("rules", VERSIONS)
@pytest.mark.parametrize("name", ["bytelevel", "wordpiece"])
def test_a_tokenizer_is_that_of_transformers(rules: Rules, name: str) -> None:
    found, golden = tokenizer(rules, name), GOLDEN[rules]["tokenizers"][name]
    assert found.vocabulary.size == golden["vocab_size"]
    assert sorted(found.vocabulary.special) == golden["special"]
    assert found.special_per_text == golden["added"]
    assert found.count("The words, 'cause it's fine: 128 tokens.") == golden["count"]


def test_the_two_rule_sets_differ() -> None:
    old, new = (GOLDEN[rules] for rules in VERSIONS)
    assert all(a["requests"] != b["requests"] for a, b in zip(old["random"], new["random"], strict=True))
    assert old["sharegpt"] != new["sharegpt"], "a BOS counts in one of them"


def prompts_of(found: Plan) -> set[str]:
    return {text for text, *_ in sent(found)}


def test_measured_runs_and_warm_ups_share_no_conversation() -> None:
    material = conversations_for("vllm-0.32.0", "bytelevel")
    workload = sharegpt({"n": 3, "output_len": None, "oversample": False}, rules="vllm-0.32.0")
    places = [Deal(3), Deal(3, number=1, skip=3), Deal(3, number=-1), Deal(3, number=-2, skip=3)]
    sets = [prompts_of(made(workload, material, place)) for place in places]
    assert sum(map(len, sets)) == len(set.union(*sets)) == 12


def test_a_data_set_that_is_used_up_starts_again() -> None:
    material = conversations_for("vllm-0.32.0", "bytelevel")
    workload = sharegpt({"n": 8, "output_len": None, "oversample": False}, rules="vllm-0.32.0")
    first = sent(made(workload, material, Deal(3)))
    again = sent(made(workload, material, Deal(3, number=1, skip=8)))
    assert len(again) == 8
    assert first[0] in again


def test_sharegpt_repeats_nothing_unless_asked() -> None:
    """vLLM repeats prompts of a data set that is too short, and the prefix cache answers them."""
    material = conversations_for("vllm-0.32.0", "bytelevel")
    workload = sharegpt({"n": 30, "output_len": None, "oversample": False}, rules="vllm-0.32.0")
    with pytest.raises(DataError, match=r"^12 of 19 prompts are fit, and requests: 30 asks for more"):
        made(workload, material, Deal(3))


def test_random_prompts_of_repeats_differ() -> None:
    workload = Workload(
        name="w", kind="random", requests=5, input_tokens=40, output_tokens=4, rules="vllm-0.32.0",
    )  # fmt: skip
    material = Material(tokenizer=tokenizer("vllm-0.32.0", "bytelevel"))
    plans = [made(workload, material, Deal(5, number=number)) for number in (0, 1, 2, -1, -2)]
    assert len({cast("Any", found).digest for found in plans}) == 5
    assert [found.seed for found in plans] == [5, 6, 7, 4, 3]
