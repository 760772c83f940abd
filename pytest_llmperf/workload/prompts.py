"""Prompts: random text of an exact number of words, no two alike."""

from __future__ import annotations

from random import Random

from pytest_llmperf.errors import UsageError
from pytest_llmperf.workload.words import WORDS


def distinct_prompts(count: int, words: int, rng: Random) -> list[str]:
    """``count`` different prompts of ``words`` words each, drawn uniformly.

    Only ``Random.random`` is used: it alone is promised to give the same numbers in every version of Python.

    Raises:
        UsageError: there are not that many different prompts of this length.
    """
    if words < 1 or len(WORDS) ** words < count:
        raise UsageError(
            f"input_tokens: {words}: there are no {count} different prompts of {words} words; make them longer"
        )
    seen: dict[str, None] = {}
    while len(seen) < count:  # ends: a draw is new with a probability of at least 1 / len(WORDS) ** words
        seen.setdefault(" ".join(WORDS[int(rng.random() * len(WORDS))] for _ in range(words)))
    return list(seen)
