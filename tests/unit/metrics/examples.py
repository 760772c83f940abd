"""Requests by the times of their chunks, as records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.row import Row
from pytest_llmperf.model.records import NEVER, Outcome, Records, TokenSource

MS = 1_000_000
WINDOW = (0, 2_000 * MS)


def request(
    chunks_ms: Sequence[float],
    *,
    sent_ms: float = 0,
    tokens: int | None = None,
    each: Sequence[int] = (),
    scheduled_ms: float | None = None,
    **fields: Any,
) -> Row:
    """One request, done 1 ms after its last chunk.

    Args:
        chunks_ms: when its chunks came.
        sent_ms: when it was sent.
        tokens: output tokens; as many as ``each`` says, or as there are chunks, unless said otherwise.
        each: tokens of each chunk; () for unknown.
        scheduled_ms: when it was due, None in a closed loop.
        fields: more of the row.
    """
    chunks = [round(time * MS) for time in chunks_ms]
    counted = sum(each) if each else len(chunks)
    told = {
        "planned_input_tokens": NEVER, "asked_tokens": NEVER, "input_tokens": 10, "outcome": Outcome.OK,
        "done_ns": chunks[-1] + MS if chunks else NEVER, "token_source": TokenSource.USAGE,
        "chunk_source": TokenSource.USAGE if each else TokenSource.NONE,
    }  # fmt: skip
    return Row(
        index=0,
        sent_ns=round(sent_ms * MS),
        scheduled_ns=NEVER if scheduled_ms is None else round(scheduled_ms * MS),
        first_token_ns=chunks[0] if chunks else NEVER,
        last_token_ns=chunks[-1] if chunks else NEVER,
        output_tokens=counted if tokens is None else tokens,
        chunk_ns=chunks,
        chunk_tokens=each,
        **{**told, **fields},
    )


def records(*requests: Row) -> Records:
    """In the order given."""
    return records_of(requests)
