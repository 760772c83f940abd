"""Prompts: random text of an exact number of words, no two alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from pytest_llmperf.errors import UsageError
from pytest_llmperf.workload.words import WORDS


def distinct_prompts(lengths: Sequence[int], rng: Random) -> list[str]:
    """One prompt for each length in words, drawn uniformly, no two alike.

    Only ``Random.random`` is used: it alone is promised to give the same numbers in every version of Python.

    Raises:
        UsageError: there are not that many different prompts of a length.
    """
    for words, count in Counter(lengths).items():
        if words < 1 or len(WORDS) ** words < count:
            raise UsageError(
                f"input_tokens: {words}: there are no {count} different prompts of {words} words; make them longer"
            )
    seen: set[str] = set()
    return [_fresh(words, rng, seen) for words in lengths]


def _fresh(words: int, rng: Random, seen: set[str]) -> str:
    while True:  # ends: a draw is new with a probability of at least 1 / len(WORDS) ** words
        prompt = " ".join(WORDS[int(rng.random() * len(WORDS))] for _ in range(words))
        before = len(seen)
        seen.add(prompt)
        if len(seen) > before:
            return prompt
