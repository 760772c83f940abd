"""An answer: what the stream of one request said, read after the clock has stopped. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from pytest_llmperf.load.sse import events
from pytest_llmperf.model.outcome import NEVER

_TEXT_FIELDS = ("reasoning_content", "reasoning", "content")
_EXCERPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The meaning of one stream.

    Attributes:
        chunk_ends: for each chunk that carries text, the offset behind the last byte of its event.
        text: everything generated, reasoning included.
        finish_reason: why the engine stopped, None when it did not say.
        done: whether ``[DONE]`` came.
        input_tokens: ``usage.prompt_tokens``, else -1.
        output_tokens: ``usage.completion_tokens``, else -1; never the number of chunks.
        cached_tokens: ``usage.prompt_tokens_details.cached_tokens``, else -1.
        error: an error event or a malformed one, with its text; "" when all was well.
    """

    chunk_ends: tuple[int, ...] = ()
    text: str = ""
    finish_reason: str | None = None
    done: bool = False
    input_tokens: int = NEVER
    output_tokens: int = NEVER
    cached_tokens: int = NEVER
    error: str = ""

    @property
    def ended(self) -> bool:
        """Whether the stream came to its own end."""
        return self.done or self.finish_reason is not None

    @property
    def text_sha256(self) -> str:
        """Digest of the text, "" when there was none."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest() if self.text else ""


def read_answer(stream: bytes) -> Answer:
    """Read the events of a completions or chat stream, up to its end or to the first error.

    A chunk carries text when ``text``, or ``content``, ``reasoning`` or ``reasoning_content`` of its ``delta``, is not
    empty: neither a chunk that only names the role nor one that only brings usage counts as a token. Of several usage
    objects (SGLang sends one with each chunk) the last one counts.
    """
    ends: list[int] = []
    texts: list[str] = []
    finish_reason: str | None = None
    usage: Mapping[str, Any] = {}
    done, error = False, ""
    for data, end in events(stream):
        if data.strip() == b"[DONE]":
            done = True
            continue
        try:
            chunk = orjson.loads(data)
            if message := _error_in(chunk):
                error = f"error event: {message}"
            text, reason = _choices(chunk)
        except (orjson.JSONDecodeError, AttributeError, TypeError):
            error = f"malformed event: {_excerpt(data)}"
        if error:
            break
        if text:
            ends.append(end)
            texts.append(text)
        finish_reason = reason or finish_reason
        usage = _mapping(chunk.get("usage")) or usage
    return Answer(
        chunk_ends=tuple(ends),
        text="".join(texts),
        finish_reason=finish_reason,
        done=done,
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cached_tokens=_count(_mapping(usage.get("prompt_tokens_details")), "cached_tokens"),
        error=error,
    )


def error_message(body: bytes) -> str:
    """What the body of an answer that is not 200 says: the message of an OpenAI error, else its beginning."""
    try:
        return _error_in(orjson.loads(body)) or _excerpt(body)
    except (orjson.JSONDecodeError, AttributeError):
        return _excerpt(body)


def _error_in(chunk: Mapping[str, Any]) -> str:
    """The message of ``{"error": {"message": ...}}`` or of vLLM's older ``{"object": "error", "message": ...}``."""
    error = chunk.get("error") or (chunk if chunk.get("object") == "error" else None)
    if error is None:
        return ""
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or orjson.dumps(error).decode())


def _choices(chunk: Mapping[str, Any]) -> tuple[str, str | None]:
    """Text and finish reason of a chunk's choices; there is one, as ``n`` is never asked for."""
    text, reason = "", None
    for choice in chunk.get("choices") or ():
        text += choice.get("text") or ""
        if delta := choice.get("delta"):
            text += "".join([delta.get(name) or "" for name in _TEXT_FIELDS])
        reason = choice.get("finish_reason") or reason
    return text, reason


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(usage: Mapping[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if isinstance(value, int) else NEVER


def _excerpt(data: bytes) -> str:
    text = " ".join(data[: 4 * _EXCERPT].decode("utf-8", "replace").split())
    return text if len(text) <= _EXCERPT else text[:_EXCERPT] + " ..."
