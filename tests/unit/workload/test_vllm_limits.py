"""The limits in vLLM's rules, at their edges, with tokenizers that do what no good one does."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from pytest_llmperf.errors import DataError, UsageError
from pytest_llmperf.model.suite import DataFile, Load, Rules, Workload
from pytest_llmperf.workload import Deal, Entry, Material, Vocabulary, plan

BURST = Load(kind="burst")
RANDOM = Workload(name="w", kind="random", requests=2, input_tokens=8, output_tokens=4, rules="vllm-0.32.0")


class Leaky:
    """A token is a number; the first one is lost whenever a text is encoded."""

    vocabulary = Vocabulary(50, frozenset({0, 1}))
    special_per_text = 0

    def __init__(self) -> None:
        self.encoded = 0

    def encode(self, text: str) -> list[int]:
        self.encoded += 1
        return [int(word) for word in text.split()][1:]

    def count(self, text: str) -> int:
        return len(text.split())

    def decode(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens))


@pytest.mark.parametrize(("rules", "rounds"), [("vllm-0.32.0", 11), ("vllm-0.11.0", 1)])
def test_lengths_are_mended_in_so_many_rounds_and_then_left(rules: Rules, rounds: int) -> None:
    tokenizer = Leaky()
    workload = Workload(name="w", kind="random", requests=2, input_tokens=8, output_tokens=4, rules=rules)
    made = plan(workload, BURST, seed=1, model_id="m", material=Material(tokenizer=tokenizer), place=Deal(3))
    assert tokenizer.encoded == 2 * rounds
    assert [request.input_tokens for request in made.requests] == [7, 7]


class Greedy(Leaky):
    special_per_text = 8


def test_a_prompt_needs_a_token_beside_the_special_ones() -> None:
    with pytest.raises(UsageError, match="input_tokens: 8: nothing is left for the prompt beside the 8 special tokens"):
        plan(RANDOM, BURST, seed=1, model_id="m", material=Material(tokenizer=Greedy()))


@pytest.mark.parametrize(
    ("prompt", "answer", "fixed", "fit"),
    [
        (4, 4, None, True),
        (3, 4, None, False),
        (4, 3, None, False),
        (4, 1, 3, True),
        (1024, 1024, None, True),
        (1025, 4, None, False),
        (1023, 1025, None, True),
        (1024, 1025, None, False),
        (4, 9, 2045, False),
        (4, 2050, 2044, True),
    ],
)
def test_which_conversations_are_fit(prompt: int, answer: int, fixed: int | None, fit: bool) -> None:
    entries = [Entry(prompt="1 " * prompt, answer="1 " * answer)]
    workload = Workload(
        name="w", kind="sharegpt", requests=1, output_tokens=fixed, rules="vllm-0.32.0", data=DataFile(path="x")
    )
    material = Material(tokenizer=Leaky(), entries=entries)
    if not fit:
        with pytest.raises(DataError, match="0 of 1 prompts are fit"):
            plan(workload, BURST, seed=1, model_id="m", material=material)
        return
    [request] = plan(workload, BURST, seed=1, model_id="m", material=material).requests
    assert (request.input_tokens, request.output_tokens) == (prompt, answer if fixed is None else fixed)
    assert len(json.loads(request.body)["prompt"].split()) == prompt
