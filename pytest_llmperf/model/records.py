"""Records: what happened to each request of a run, in columns of raw facts.

Times are CLOCK_MONOTONIC nanoseconds; -1 stands for "never" in time columns and for "unknown" in count columns.
Nothing here is derived: every metric is recomputed from these columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_llmperf.model.outcome import NEVER, Outcome
from pytest_llmperf.model.token_source import TokenSource

__all__ = ["NEVER", "Int16", "Int64", "Outcome", "Records", "TokenSource"]

Int64 = npt.NDArray[np.int64]
Int16 = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """n requests and their k chunks.

    Attributes:
        scheduled_ns: (n) when it should have been sent; -1 in a closed loop.
        sent_ns: (n) when its bytes were handed to the socket.
        first_token_ns: (n) arrival of the first chunk that bears tokens (the rule is in ``load.chunk``).
        last_token_ns: (n) arrival of the last one.
        done_ns: (n) end of the stream.
        input_tokens: (n) as the server counted (usage), else -1.
        planned_input_tokens: (n) as the client counted, else -1.
        output_tokens: (n) as ``token_source`` says, else -1; never the number of chunks.
        token_source: (n) ``TokenSource`` of ``output_tokens``.
        cached_tokens: (n) prompt tokens that the server says came from its prefix cache, else -1.
        asked_tokens: (n) output tokens asked for.
        status: (n) HTTP status, -1 where no answer came.
        outcome: (n) ``Outcome`` values.
        reason: (n) why it failed, "" when it did not.
        text_sha256: (n) digest of the generated text, "" when there was none.
        chunk_source: (n) ``TokenSource`` of ``chunk_tokens``.
        chunk_ns: (k) arrival of every chunk that bears tokens, request after request.
        chunk_tokens: (k) how many tokens it bears, else -1. They are known of all chunks of a request, where they add
            up to its ``output_tokens``, or of none.
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
    token_source: Int64
    cached_tokens: Int64
    asked_tokens: Int64
    status: Int64
    outcome: Int64
    reason: tuple[str, ...]
    text_sha256: tuple[str, ...]
    chunk_source: Int64
    chunk_ns: Int64
    chunk_tokens: Int16
    chunk_start: Int64

    def __post_init__(self) -> None:
        n = len(self.sent_ns)
        columns = (
            self.scheduled_ns, self.first_token_ns, self.last_token_ns, self.done_ns, self.input_tokens,
            self.planned_input_tokens, self.output_tokens, self.cached_tokens, self.asked_tokens, self.status,
            self.outcome, self.reason, self.text_sha256, self.token_source, self.chunk_source,
        )  # fmt: skip
        if any(len(column) != n for column in columns) or len(self.chunk_start) != n + 1:
            raise ValueError(f"columns of different length in records of {n} requests")
        if not int(self.chunk_start[-1]) == len(self.chunk_ns) == len(self.chunk_tokens):
            raise ValueError("chunk_start does not end at the last chunk")

    def __len__(self) -> int:
        return len(self.sent_ns)

    @property
    def ok(self) -> npt.NDArray[np.bool_]:
        """(n) True where the request succeeded."""
        return np.equal(self.outcome, Outcome.OK)

    @property
    def total_output_tokens(self) -> int | None:
        """Of all successful requests; None when one of them is unknown."""
        counts = self.output_tokens[self.ok]
        return None if (counts == NEVER).any() else int(counts.sum())

    @property
    def failed(self) -> npt.NDArray[np.bool_]:
        """(n) True where the request failed by itself, and not because the run ended early."""
        return ~np.isin(self.outcome, (Outcome.OK, Outcome.ABANDONED))
