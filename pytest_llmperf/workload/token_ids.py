"""Token ids: prompts of random tokens, so that their length is exact whatever the tokenizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from pytest_llmperf.errors import UsageError
from pytest_llmperf.workload.stream import below


def distinct_ids(lengths: Sequence[int], vocabulary: Sequence[int], key: str) -> list[list[int]]:
    """One prompt for each length, drawn uniformly from ``vocabulary``, no two alike.

    Raises:
        UsageError: there are not that many different prompts of a length.
    """
    for length, count in Counter(lengths).items():
        if length < 1 or (length < count.bit_length() and len(vocabulary) ** length < count):
            raise UsageError(
                f"input_tokens: {length}: there are no {count} different prompts of {length} tokens out of"
                f" {len(vocabulary)}; make them longer"
            )
    numbers = below(len(vocabulary), key)
    seen: set[tuple[int, ...]] = set()
    return [_fresh(numbers, length, vocabulary, seen) for length in lengths]


def shared_prefix_ids(
    lengths: Sequence[int], prefix: int, groups: int, vocabulary: Sequence[int], key: str
) -> list[list[int]]:
    """Prompts whose first ``prefix`` tokens are those of their group: request i belongs to group i modulo ``groups``.

    Raises:
        UsageError: as ``distinct_ids``, for the prefixes and for what follows them.
    """
    beginnings = distinct_ids([prefix] * groups, vocabulary, f"{key}:prefixes")
    endings = distinct_ids([length - prefix for length in lengths], vocabulary, f"{key}:suffixes")
    return [beginnings[i % groups] + ending for i, ending in enumerate(endings)]


def _fresh(numbers: Iterator[int], length: int, vocabulary: Sequence[int], seen: set[tuple[int, ...]]) -> list[int]:
    while True:  # ends: a draw is new with a probability of at least one over the number of different prompts
        prompt = [vocabulary[number] for number in islice(numbers, length)]
        before = len(seen)
        seen.add(tuple(prompt))
        if len(seen) > before:
            return prompt
