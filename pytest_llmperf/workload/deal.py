"""A deal: which prompts of a file fall to a run, so that no server sees one twice before the file is used up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

from pytest_llmperf.errors import DataError
from pytest_llmperf.workload.ask import Ask
from pytest_llmperf.workload.material import Entry


@dataclass(frozen=True, slots=True)
class Deal:
    """The place of one run among those that one server has seen.

    Attributes:
        seed: the same for all runs of a session.
        number: of the measured run, from 0; warm-ups count down from -1.
        skip: how many prompts the runs before it, on its side of zero, have had.
    """

    seed: int
    number: int = 0
    skip: int = 0

    @property
    def run_seed(self) -> int:
        """The ``--seed`` of ``vllm bench serve`` for random prompts: the session's for the first run, one more each."""
        return (self.seed + self.number) % 2**32  # vLLM takes no larger one


Repeat = Callable[[Sequence[Ask], int, Random], list[Ask]]
"""Which prompts of a file that is too short are sent again: from all of them, so many."""


def deal(
    entries: Sequence[Entry], use: Callable[[Entry], Ask | None], count: int, place: Deal, repeat: Repeat | None
) -> list[Ask]:
    """``count`` requests out of ``entries``: from the top for measured runs, from the bottom for warm-ups.

    A file that is used up starts again; what repeats then is for the check of prefix-cache hits to judge.

    Args:
        entries: in their order.
        use: makes a request of an entry, or None of one that is not fit.
        count: how many.
        place: of the run.
        repeat: fills up a run for which the whole file is too short; None where that is an error.

    Raises:
        DataError: there are fewer fit entries than requests, and none may repeat.
    """

    def fit() -> Iterator[Ask]:
        ordered = reversed(entries) if place.number < 0 else entries
        return (ask for entry in ordered if (ask := use(entry)) is not None)

    dealt = list(islice(fit(), place.skip, place.skip + count))
    if len(dealt) == count:
        return dealt
    everything = list(fit())
    if len(everything) >= count:
        start = place.skip % len(everything)
        return (everything + everything)[start : start + count]
    if repeat is None or not everything:
        raise DataError(
            f"{len(everything)} of {len(entries)} prompts are fit, and requests: {count} asks for more; lower it, or "
            "write oversample: true to send some of them again"
        )
    return everything + repeat(everything, count - len(everything), Random(place.run_seed))


def one_by_one(asks: Sequence[Ask], count: int, rng: Random) -> list[Ask]:
    """As vLLM 0.32.0 repeats prompts."""
    return [rng.choice(asks) for _ in range(count)]


def all_at_once(asks: Sequence[Ask], count: int, rng: Random) -> list[Ask]:
    """As vLLM 0.11.0 repeats prompts, which gives others."""
    return rng.choices(asks, k=count)
