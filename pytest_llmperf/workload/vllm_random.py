"""Random prompts as ``vllm bench serve --dataset-name random`` makes them, to the byte, by the rules of two versions.

Both walk through the vocabulary: a prompt is a run of consecutive token ids from a random place on, decoded to text.
Text does not always come back as the tokens that it was made of, so lengths are nearly right; ``token-ids`` is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.suite import Workload
from pytest_llmperf.workload.ask import Ask
from pytest_llmperf.workload.deal import Deal
from pytest_llmperf.workload.material import Tokenizer

ROUNDS = 10
"""How often version 0.32.0 encodes a prompt again to come closer to its length."""

Ids = npt.NDArray[np.int64]


def random_text(workload: Workload, tokenizer: Tokenizer, place: Deal) -> list[Ask]:
    """The requests of one run.

    The generator is drawn from in vLLM's order: all input lengths, all output lengths, all places in the vocabulary,
    the prefix, then what prompts lack after they were encoded again.

    Raises:
        UsageError: no prompt can be as short as this.
    """
    rng = np.random.default_rng(place.run_seed)
    input_lens, output_lens, offsets = _draws(workload, tokenizer, rng)
    make = _WholeVocabulary if workload.rules == "vllm-0.11.0" else _WithoutSpecial
    maker = make(tokenizer, rng, workload.prefix_tokens or 0)
    asks = []
    for i, (input_len, output_len, offset) in enumerate(zip(input_lens, output_lens, offsets, strict=True)):
        prompt, length = maker.prompt(int(offset) + i, int(input_len))
        asks.append(Ask(prompt=prompt, input_tokens=length, output_tokens=int(output_len)))
    return asks


def _draws(workload: Workload, tokenizer: Tokenizer, rng: np.random.Generator) -> tuple[Ids, Ids, Ids]:
    ratio, count = workload.range_ratio or 0.0, workload.requests
    given, asked = workload.input_tokens, workload.output_tokens
    if not isinstance(given, int) or not isinstance(asked, int):
        raise UsageError("kind random: input_tokens and output_tokens must be whole numbers")
    real = max(0, given - tokenizer.special_per_text)
    low, high = math.floor(real * (1 - ratio)), math.ceil(real * (1 + ratio))
    if low + (workload.prefix_tokens or 0) < 1:
        raise UsageError(
            f"input_tokens: {given}: nothing is left for the prompt beside the {tokenizer.special_per_text} special "
            "tokens that the tokenizer adds; make it longer"
        )
    least, most = max(math.floor(asked * (1 - ratio)), 1), math.ceil(asked * (1 + ratio))
    return (
        rng.integers(low, high + 1, size=count),
        rng.integers(least, most + 1, size=count),
        rng.integers(0, tokenizer.vocabulary.size, size=count),
    )


class _WholeVocabulary:
    """Version 0.11.0: special tokens too; encoded again once and cut, never filled up."""

    def __init__(self, tokenizer: Tokenizer, rng: np.random.Generator, prefix: int) -> None:
        self._tokenizer = tokenizer
        self._size = tokenizer.vocabulary.size
        self._prefix: list[int] = rng.integers(0, self._size, size=prefix).tolist() if prefix else []

    def prompt(self, start: int, length: int) -> tuple[str, int]:
        """A text and its length in tokens."""
        ids = [*self._prefix, *((start + np.arange(length)) % self._size).tolist()]
        again = self._tokenizer.encode(self._tokenizer.decode(ids))[: len(ids)]
        return self._tokenizer.decode(again), len(again)


class _WithoutSpecial:
    """Version 0.32.0: no special tokens; cut or filled up in rounds until the length is right."""

    def __init__(self, tokenizer: Tokenizer, rng: np.random.Generator, prefix: int) -> None:
        self._tokenizer = tokenizer
        self._rng = rng
        vocabulary = tokenizer.vocabulary
        # In the order of a set, as in vLLM: ascending but for small vocabularies with large gaps.
        self._allowed = np.array(list(set(range(vocabulary.size)) - set(vocabulary.special)))
        self._prefix: list[int] = []
        self._wanted = prefix
        if prefix:
            ids = self._allowed[rng.integers(0, len(self._allowed), size=prefix)].tolist()
            self._prefix = self._settle(ids, prefix)[1]

    def prompt(self, start: int, length: int) -> tuple[str, int]:
        """A text and its length in tokens."""
        inner = self._allowed[(start + np.arange(length)) % len(self._allowed)].tolist()
        prompt, ids = self._settle([*self._prefix, *inner], self._wanted + length)
        return prompt, len(ids)

    def _settle(self, ids: Sequence[int], length: int) -> tuple[str, list[int]]:
        """A text of ``length`` tokens, if ten rounds find one, and its tokens."""
        left = ROUNDS
        while True:
            prompt = self._tokenizer.decode(ids)
            again = self._tokenizer.encode(prompt)
            if len(again) == length or left == 0:
                return prompt, again
            missing = max(0, length - len(again))
            extra = self._rng.integers(0, self._tokenizer.vocabulary.size, size=missing).tolist() if missing else []
            ids = (again + extra)[:length]
            left -= 1
