"""An answer: what the stream of one request said, read after the clock has stopped. No I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

import orjson

from pytest_llmperf.load.chunk import said_by_delta
from pytest_llmperf.load.sse import Events, parse_events
from pytest_llmperf.model.outcome import NEVER
from pytest_llmperf.model.token_source import TokenSource

_EXCERPT = 200
_DONE = b"[DONE]"
_BATCH = 256
"""Events that are parsed together: enough to be quick, few enough to need little memory."""
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
    datas, ends, names = parse_events(stream)
    reading = _Reading()
    for first in range(0, len(datas), _BATCH):
        batch = slice(first, first + _BATCH)
        reading.take(Events(datas[batch], ends[batch], names[batch]))
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

    __slots__ = ("_before", "_by_ids", "_chunks", "_finish_reason", "_usage", "done", "error")

    def __init__(self) -> None:
        self.error = ""
        self.done = False
        self._chunks: list[tuple[int, str, int]] = []  # end, text and tokens of each that bears any
        self._finish_reason: str | None = None
        self._usage: Mapping[str, Any] = {}
        self._before = 0  # completion tokens before the next chunk, NEVER once that is not known
        self._by_ids = False

    def take(self, events: Events) -> None:  # noqa: C901, PLR0912 (a call a chunk would cost as much as the chunk)
        """Read more events, up to ``[DONE]`` or to one that no completion has, which sets ``error``."""
        before, add = self._before, self._chunks.append
        for data, end, name, chunk in zip(*events, _parsed_together(events), strict=True):
            try:
                if chunk is None:
                    chunk = self._looked_at(data, name)  # noqa: PLW2901
                    if chunk is None:
                        if self.error or self.done:
                            return
                        continue
                total = NEVER
                if usage := chunk.get("usage"):
                    total = self._counted(usage)
                    if self.error:
                        return
                if choices := chunk.get("choices"):
                    choice = choices[0]  # there is one, as ``n`` is never asked for
                    if reason := choice.get("finish_reason"):
                        self._finish_reason = reason
                    text = choice.get("text")
                    if isinstance(text, str):
                        bears = text != "" or not reason
                    else:
                        text, bears = said_by_delta(choice, ended=bool(reason))
                    count = NEVER
                    if ids := choice.get("token_ids"):
                        count, self._by_ids = len(ids), True
                    elif total >= before != NEVER:
                        count = total - before
                    if text or count > 0 or (bears and count == NEVER):
                        add((end, text, count))
                        before = total
            except (ValueError, LookupError, AttributeError, TypeError):
                self._refuse(data, name)
                if self.error:
                    return
        self._before = before

    def _counted(self, usage: Any) -> int:
        """Keep the usage object; its completion tokens. One that cannot be sets ``error``."""
        if not isinstance(usage, dict):
            return NEVER
        self._usage = usage
        total = usage.get("completion_tokens", NEVER)
        if type(total) is int and 0 <= total < _MOST_COUNTED:
            return total
        self.error = _usage_fault(usage)
        return NEVER

    def _looked_at(self, data: bytes, name: str) -> Any:
        """The chunk of an event of any kind; None where it has none.

        Raises:
            ValueError: it is no JSON.
        """
        rest = data.strip()
        if rest in (b"", _DONE):  # an empty one keeps a connection alive
            self.done = bool(rest)
            return None
        chunk = _parsed(rest)
        if message := _error_in(chunk) or (_error_in({"error": chunk}) if name == "error" else ""):
            self.error = f"error event: {message}"
            return None
        return chunk

    def _refuse(self, data: bytes, name: str) -> None:
        """What no completion has; what comes under a name of its own need not be one."""
        if name == "error":
            self.error = f"error event: {_excerpt(data)}"
        elif not name:
            self.error = f"malformed event: {_excerpt(data)}"

    def answer(self) -> Answer:
        """What has been read, as a whole."""
        ends, texts, counts = zip(*self._chunks, strict=True) if self._chunks else ((), (), ())
        output, source = _count(self._usage, "completion_tokens"), TokenSource.USAGE
        counted = sum(counts) if counts and min(counts) > 0 else NEVER
        if output == NEVER or (output == 0 and ends):  # a gateway that knows nothing says 0
            output, source = (counted, TokenSource.TOKEN_IDS) if self._by_ids else (NEVER, TokenSource.NONE)
        known = counted == output != NEVER and max(counts) <= _MOST_TOKENS
        return Answer(
            chunk_ends=ends,
            chunk_tokens=counts if known else (),
            chunk_source=(TokenSource.TOKEN_IDS if self._by_ids else TokenSource.USAGE) if known else TokenSource.NONE,
            text="".join(texts),
            finish_reason=self._finish_reason,
            done=self.done,
            input_tokens=_count(self._usage, "prompt_tokens"),
            output_tokens=output,
            output_source=source if output != NEVER else TokenSource.NONE,
            cached_tokens=_count(_mapping(self._usage.get("prompt_tokens_details")), "cached_tokens"),
            error=self.error or _usage_fault(self._usage),
        )


def _parsed_together(events: Events) -> list[Any]:
    """The chunk of each event, parsed as one list, which is quicker; None for those to be looked at one by one.

    These are ``[DONE]``, and all where one of them has a name, speaks of an error, or is no JSON.
    """
    datas = events.datas
    one_by_one = [None] * len(datas)
    last = datas[-1] == _DONE
    together = b"[%b]" % b",".join(datas[:-1] if last else datas)
    if any(events.names) or b'"error"' in together:
        return one_by_one
    try:
        chunks: list[Any] = orjson.loads(together)
    except orjson.JSONDecodeError:
        return one_by_one
    if last:
        chunks.append(None)
    return chunks if len(chunks) == len(datas) else one_by_one


def _parsed(data: bytes) -> Any:
    """The JSON of an event.

    Raises:
        ValueError: it is none.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:  # which also refuses half of a surrogate pair in its escaped form: it is legal
        return json.loads(data)


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
