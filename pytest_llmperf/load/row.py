"""A row: the raw facts of one request, as columns of ``Records`` need them. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_llmperf.load.answer import Answer, error_message, read_answer
from pytest_llmperf.load.body import Body, extract_body, reached
from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.http1 import HttpError
from pytest_llmperf.load.job import JobRequest
from pytest_llmperf.model.outcome import NEVER, Outcome
from pytest_llmperf.model.token_source import TokenSource

_OK = 200
_REASON = 500
"""Characters of a reason; a server may say megabytes."""
_BROKEN_OFF = {"abort", "error", "cancelled", "timeout"}
"""Finish reasons by which an engine says that it gave up."""


@dataclass(slots=True, kw_only=True)
class Row:
    """One request; the fields are those of ``model.records.Records``, for this request alone.

    ``chunk_tokens`` is () where they are unknown.
    """

    index: int
    planned_input_tokens: int
    asked_tokens: int
    scheduled_ns: int = NEVER
    sent_ns: int = NEVER
    first_token_ns: int = NEVER
    last_token_ns: int = NEVER
    done_ns: int = NEVER
    input_tokens: int = NEVER
    output_tokens: int = NEVER
    cached_tokens: int = NEVER
    status: int = NEVER
    outcome: int = Outcome.FAILED
    reason: str = ""
    text_sha256: str = ""
    token_source: int = TokenSource.NONE
    chunk_source: int = TokenSource.NONE
    chunk_ns: Sequence[int] = ()
    chunk_tokens: Sequence[int] = ()


def unsent_row(request: JobRequest, reason: str) -> Row:
    """The row of a request that nobody can tell anything of."""
    return Row(
        index=request.index,
        planned_input_tokens=request.planned_input_tokens,
        asked_tokens=request.asked_tokens,
        reason=f"not sent: {reason}",
    )


def read_row(request: JobRequest, exchange: Exchange, *, exact_output: bool) -> Row:
    """What one exchange meant.

    An event has arrived with the read that brought its last byte. Whatever came before a failure is kept.
    """
    row = Row(
        index=request.index,
        planned_input_tokens=request.planned_input_tokens,
        asked_tokens=request.asked_tokens,
        scheduled_ns=exchange.at_ns,
        sent_ns=exchange.sent_ns,
        done_ns=exchange.done_ns,
        outcome=exchange.outcome,
        reason=exchange.reason,
    )
    head = exchange.framing.head
    if head is None:
        return row
    row.status = head.status
    try:
        body = extract_body(exchange.raw, head)
    except HttpError as error:
        body = Body(b"", [], [])
        _fail(row, str(error))
    if head.status != _OK:
        _fail(row, f"HTTP {head.status}: {error_message(body.data)}")
        return row
    answer = read_answer(body.data)
    _fill(row, answer, exchange, body)
    wrong = answer_fault(answer, asked=request.asked_tokens, exact_output=exact_output)
    if wrong and not answer.chunk_ends and not answer.error and body.data:
        wrong = f"{wrong}; the answer ({head.content_type or 'no content type'}) begins: {error_message(body.data)}"
    if answer.error or (wrong and row.outcome == Outcome.OK):
        _fail(row, wrong)
    elif row.reason:
        row.reason += f", after {len(answer.chunk_ends)} chunks"
    return row


def answer_fault(answer: Answer, *, asked: int, exact_output: bool) -> str:
    """Why an HTTP 200 answer is a failure, "" when it is not.

    A missing ``[DONE]`` is none where the finish reason came. A missing finish reason is one, unless the count shows
    that all that was asked for has come.
    """
    if answer.error:
        return answer.error
    if answer.finish_reason is None and not answer.done:
        return f"closed mid-stream after {len(answer.chunk_ends)} chunks: no finish_reason, no [DONE]"
    if not answer.chunk_ends:
        return "HTTP 200 without a single token"
    return _broken_off(answer, asked) or (_wrong_length(answer, asked) if exact_output else "")


def _broken_off(answer: Answer, asked: int) -> str:
    chunks = len(answer.chunk_ends)
    if answer.finish_reason in _BROKEN_OFF:
        return f"the engine broke off after {chunks} chunks: finish_reason {answer.finish_reason!r}"
    if answer.finish_reason is None and answer.output_tokens != asked:
        return f"[DONE] after {chunks} chunks without a finish_reason: nothing says that the answer is whole"
    return ""


def _wrong_length(answer: Answer, asked: int) -> str:
    if answer.output_tokens not in (asked, NEVER):
        return f"asked {asked} output tokens, got {answer.output_tokens}"
    if answer.output_tokens == NEVER and answer.finish_reason != "length":
        return f"asked {asked} output tokens, ended by {answer.finish_reason!r} and reported no usage"
    return ""


def _fill(row: Row, answer: Answer, exchange: Exchange, body: Body) -> None:
    stamps = exchange.stamps
    arrivals = [stamps[read] for read in reached(exchange.offsets, body.offsets(answer.chunk_ends))]
    if arrivals:
        row.first_token_ns, row.last_token_ns = arrivals[0], arrivals[-1]
    row.chunk_ns = arrivals
    row.chunk_tokens = answer.chunk_tokens
    row.chunk_source = answer.chunk_source
    row.input_tokens = answer.input_tokens
    row.output_tokens = answer.output_tokens
    row.token_source = answer.output_source
    row.cached_tokens = answer.cached_tokens
    row.text_sha256 = answer.text_sha256


def _fail(row: Row, reason: str) -> None:
    """A reason may quote the server: it is cut, and half a surrogate pair, which no file takes, is replaced."""
    said = reason if len(reason) <= _REASON else reason[:_REASON] + " ..."
    row.outcome, row.reason = Outcome.FAILED, said.encode("utf-8", "replace").decode()
