"""An answer: what the stream of one request said, read after the clock has stopped. No I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import orjson

from pytest_llmperf.load.chunk import said, tokens_of
from pytest_llmperf.load.sse import Event, events
from pytest_llmperf.model.outcome import NEVER
from pytest_llmperf.model.token_source import TokenSource

_EXCERPT = 200
_DONE = b"[DONE]"
_MOST_COUNTED = 2**53
"""No count of tokens; beyond it JSON numbers are no longer exact."""
_MOST_TOKENS = 2**15 - 1
"""Of one chunk: what the column of the records holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The meaning of one stream.

    Attributes:
        chunk_ends: for each chunk that bears tokens (``load.chunk``), the offset behind the last byte of its event.
        chunk_tokens: how many tokens each of them bears; () when the stream does not say it of all of them.
        chunk_source: who said it.
        text: everything generated, reasoning included.
        finish_reason: why the engine stopped, None when it did not say.
        done: whether ``[DONE]`` came.
        input_tokens: ``usage.prompt_tokens``, else -1.
        output_tokens: ``usage.completion_tokens``, else the number of token ids, else -1; never the number of chunks.
        output_source: who said it.
        cached_tokens: ``usage.prompt_tokens_details.cached_tokens``, else -1.
        error: an error event, a malformed one, or a usage that cannot be, with its text; "" when all was well.
    """

    chunk_ends: tuple[int, ...] = ()
    chunk_tokens: tuple[int, ...] = ()
    chunk_source: TokenSource = TokenSource.NONE
    text: str = ""
    finish_reason: str | None = None
    done: bool = False
    input_tokens: int = NEVER
    output_tokens: int = NEVER
    output_source: TokenSource = TokenSource.NONE
    cached_tokens: int = NEVER
    error: str = ""

    @property
    def text_sha256(self) -> str:
        """Digest of the text, "" when there was none."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest() if self.text else ""


def read_answer(stream: bytes) -> Answer:
    """Read the events of a completions or chat stream, up to ``[DONE]``, its end or the first error.

    Of several usage objects the last one counts; each one in a chunk also tells how many tokens there were so far.
    """
    reading = _Reading()
    for event in events(stream):
        reading.take(event)
        if reading.error or reading.done:
            break
    return reading.answer()


def error_message(body: bytes) -> str:
    """What the body of an answer that is not 200 says: the message of an OpenAI error, else its beginning."""
    try:
        return _error_in(orjson.loads(body)) or _excerpt(body)
    except (orjson.JSONDecodeError, AttributeError):
        return _excerpt(body)


class _Reading:
    """A stream, read so far."""

    __slots__ = ("_before", "_by_ids", "_counts", "_ends", "_finish_reason", "_texts", "_usage", "done", "error")

    def __init__(self) -> None:
        self.error = ""
        self.done = False
        self._ends: list[int] = []
        self._counts: list[int] = []
        self._texts: list[str] = []
        self._finish_reason: str | None = None
        self._usage: Mapping[str, Any] = {}
        self._before = 0  # completion tokens before the next chunk, NEVER once that is not known
        self._by_ids = False

    def take(self, event: Event) -> None:
        """Read one more event; a bad one sets ``error``."""
        data, end, name = event
        try:
            chunk = _parsed(data)
            if chunk is None:
                self.done = self.done or data.strip() == _DONE
                return
            if message := _error_in(chunk) or (_error_in({"error": chunk}) if name == "error" else ""):
                self.error = f"error event: {message}"
                return
            self._chunk(chunk, end)
        except (ValueError, LookupError, AttributeError, TypeError):
            if name == "error":
                self.error = f"error event: {_excerpt(data)}"
            elif not name:  # what comes under a name of its own need not be JSON
                self.error = f"malformed event: {_excerpt(data)}"

    def _chunk(self, chunk: Mapping[str, Any], end: int) -> None:
        usage = chunk.get("usage")
        total = NEVER
        if usage and isinstance(usage, dict):
            self._usage = usage
            self.error = _usage_fault(usage)
            total = _count(usage, "completion_tokens")
        choices = chunk.get("choices")
        if not choices:
            return
        choice = choices[0]  # there is one, as ``n`` is never asked for
        text, bears = said(choice)
        if reason := choice.get("finish_reason"):
            self._finish_reason = reason
        count, by_ids = tokens_of(choice, total, self._before)
        if count > 0 or text or (bears and count == NEVER):
            self._ends.append(end)
            self._counts.append(count)
            self._texts.append(text)
            self._before = total
            self._by_ids |= by_ids

    def answer(self) -> Answer:
        """What has been read, as a whole."""
        output, source = _count(self._usage, "completion_tokens"), TokenSource.USAGE
        counted = sum(self._counts) if self._counts and min(self._counts) > 0 else NEVER
        if output == NEVER or (output == 0 and self._ends):  # a gateway that knows nothing says 0
            output, source = (counted, TokenSource.TOKEN_IDS) if self._by_ids else (NEVER, TokenSource.NONE)
        known = counted == output != NEVER and max(self._counts) <= _MOST_TOKENS
        return Answer(
            chunk_ends=tuple(self._ends),
            chunk_tokens=tuple(self._counts) if known else (),
            chunk_source=(TokenSource.TOKEN_IDS if self._by_ids else TokenSource.USAGE) if known else TokenSource.NONE,
            text="".join(self._texts),
            finish_reason=self._finish_reason,
            done=self.done,
            input_tokens=_count(self._usage, "prompt_tokens"),
            output_tokens=output,
            output_source=source if output != NEVER else TokenSource.NONE,
            cached_tokens=_count(_mapping(self._usage.get("prompt_tokens_details")), "cached_tokens"),
            error=self.error,
        )


def _parsed(data: bytes) -> Any:
    """The JSON of an event; None for ``[DONE]`` and for an empty one, which keeps a connection alive.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        rest = data.strip()
        # Python's parser takes what is legal and orjson refuses: half a surrogate pair, in its escaped form.
        return None if rest in (b"", _DONE) else json.loads(rest)


def _error_in(chunk: Mapping[str, Any]) -> str:
    """The message of ``{"error": {"message": ...}}`` or of SGLang's ``{"object": "error", "message": ...}``."""
    error = chunk.get("error") or (chunk if chunk.get("object") == "error" else None)
    if error is None:
        return ""
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or orjson.dumps(error).decode())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _usage_fault(usage: Mapping[str, Any]) -> str:
    """The first count that is there and cannot be one; "" when there is none."""
    details = _mapping(usage.get("prompt_tokens_details"))
    for counts, key in ((usage, "completion_tokens"), (usage, "prompt_tokens"), (details, "cached_tokens")):
        value = counts.get(key)
        if value is not None and not _is_count(value):
            return f"usage says {key} = {value!r}"
    return ""


def _count(usage: Mapping[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if _is_count(value) else NEVER


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < _MOST_COUNTED  # True is no count


def _excerpt(data: bytes) -> str:
    text = " ".join(data[: 4 * _EXCERPT].decode("utf-8", "replace").split())
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + " ..."
