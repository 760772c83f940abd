"""What a drive gives back, and what it says while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_llmperf.model.records import Records
from pytest_llmperf.model.run import ClientFacts

End = Literal["complete", "failed", "stalled", "died"]
"""Why the load ended.

``complete``: every request ended by itself. ``failed``: one had failed, so the rest was abandoned. ``stalled``: no byte
for the stall timeout. ``died``: the engine did.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One run's raw facts.

    ``window_ns`` is monotonic, from the start of the load (before the first send) to the end of the last stream, or
    to the abort; ``raw_kept`` is how many raw responses are in the run's folder.
    """

    records: Records
    client: ClientFacts
    window_ns: tuple[int, int]
    end: End
    raw_kept: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a drive is, from heartbeats that are at most a quarter of a second old.

    Attributes:
        total: requests of the plan.
        done: requests that ended, in whatever way.
        failed: those of them that ended without a whole HTTP 200 answer.
        in_flight: requests dispatched and not ended.
        chunks: reads that brought data, over all streams.
        elapsed_s: since the start of the load.
    """

    total: int
    done: int
    failed: int
    in_flight: int
    chunks: int
    elapsed_s: float
