"""ShareGPT: requests out of recorded conversations, chosen by the rules of ``vllm bench serve``."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from pytest_llmperf.model.suite import Workload
from pytest_llmperf.workload.ask import Ask
from pytest_llmperf.workload.deal import Deal, all_at_once, deal, one_by_one
from pytest_llmperf.workload.material import Entry, Tokenizer

SHORTEST, LONGEST_PROMPT, LONGEST = 4, 1024, 2048
"""Tokens: of a prompt and of an answer at least; of a prompt, and of both together, at most."""


def conversations(workload: Workload, entries: Sequence[Entry], tokenizer: Tokenizer, place: Deal) -> list[Ask]:
    """The requests of one run.

    The file is shuffled by the session's seed and dealt out from its top, so the first measured run of a server has
    the prompts, in the order, of ``vllm bench serve --dataset-name sharegpt --seed SEED --no-oversample``. A prompt is
    the first turn of a conversation; the second turn's length is what is asked for, unless the workload fixes it.

    Raises:
        DataError: there are too few fit conversations.
    """
    shuffled = list(entries)
    Random(place.seed).shuffle(shuffled)
    fixed = workload.output_tokens if isinstance(workload.output_tokens, int) else None

    def use(entry: Entry) -> Ask | None:
        given = tokenizer.count(entry.prompt)
        asked = tokenizer.count(entry.answer) if fixed is None else fixed
        too_short = given < SHORTEST or (fixed is None and asked < SHORTEST)
        if too_short or given > LONGEST_PROMPT or given + asked > LONGEST:
            return None
        return Ask(prompt=entry.prompt, input_tokens=given, output_tokens=asked)

    repeat = all_at_once if workload.rules == "vllm-0.11.0" else one_by_one
    return deal(shuffled, use, workload.requests, place, repeat if workload.oversample else None)
