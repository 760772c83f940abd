"""Records: what happened to each request of a run, in columns of raw facts.

Times are CLOCK_MONOTONIC nanoseconds; -1 stands for "never" in time columns and for "unknown" in count columns.
Nothing here is derived: every metric is recomputed from these columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_llmperf.model.outcome import NEVER, Outcome

__all__ = ["NEVER", "Int64", "Outcome", "Records"]

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """n requests and their k chunks.

    Attributes:
        scheduled_ns: (n) when it should have been sent; -1 in a closed loop.
        sent_ns: (n) when its bytes were handed to the socket.
        first_token_ns: (n) arrival of the first chunk that carries text.
        last_token_ns: (n) arrival of the last chunk that carries text.
        done_ns: (n) end of the stream.
        input_tokens: (n) as the server counted (usage), else -1.
        planned_input_tokens: (n) as the client counted, else -1.
        output_tokens: (n) from usage, else -1; never the number of chunks.
        cached_tokens: (n) prompt tokens that the server says came from its prefix cache, else -1.
        asked_tokens: (n) output tokens asked for.
        status: (n) HTTP status, -1 where no answer came.
        outcome: (n) ``Outcome`` values.
        reason: (n) why it failed, "" when it did not.
        text_sha256: (n) digest of the generated text, "" when there was none.
        chunk_ns: (k) arrival of every chunk that carries text, request after request.
        chunk_start: (n+1) request i owns ``chunk_ns[chunk_start[i]:chunk_start[i+1]]``.
    """

    scheduled_ns: Int64
    sent_ns: Int64
    first_token_ns: Int64
    last_token_ns: Int64
    done_ns: Int64
    input_tokens: Int64
    planned_input_tokens: Int64
    output_tokens: Int64
    cached_tokens: Int64
    asked_tokens: Int64
    status: Int64
    outcome: Int64
    reason: tuple[str, ...]
    text_sha256: tuple[str, ...]
    chunk_ns: Int64
    chunk_start: Int64

    def __post_init__(self) -> None:
        n = len(self.sent_ns)
        columns = (
            self.scheduled_ns, self.first_token_ns, self.last_token_ns, self.done_ns, self.input_tokens,
            self.planned_input_tokens, self.output_tokens, self.cached_tokens, self.asked_tokens, self.status,
            self.outcome, self.reason, self.text_sha256,
        )  # fmt: skip
        if any(len(column) != n for column in columns) or len(self.chunk_start) != n + 1:
            raise ValueError(f"columns of different length in records of {n} requests")
        if int(self.chunk_start[-1]) != len(self.chunk_ns):
            raise ValueError("chunk_start does not end at the last chunk")

    def __len__(self) -> int:
        return len(self.sent_ns)

    @property
    def ok(self) -> npt.NDArray[np.bool_]:
        """(n) True where the request succeeded."""
        return np.equal(self.outcome, Outcome.OK)
