"""The dealer: gives every run of a server prompts that this server has not seen."""

from __future__ import annotations

from pytest_llmperf.model.suite import Workload
from pytest_llmperf.workload import Deal


class Dealer:
    """Remembers, by server and file, how many prompts were dealt: to measured runs and to warm-ups.

    All cases of a server are dealt to from one pack, also those that use the same file differently.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed % 2**32  # what vLLM's --seed can repeat
        self._dealt: dict[tuple[str, str, bool], tuple[int, int]] = {}

    def deal(self, session: str, workload: Workload, *, warm_up: bool) -> Deal:
        """The place of the next run of a server; each call is a run."""
        source = workload.kind if workload.data is None else str(workload.data.sha256)
        runs, prompts = self._dealt.get((session, source, warm_up), (0, 0))
        self._dealt[session, source, warm_up] = (runs + 1, prompts + workload.requests)
        return Deal(self._seed, -1 - runs if warm_up else runs, prompts)
