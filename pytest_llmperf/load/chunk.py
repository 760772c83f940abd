"""A chunk: what one event of a stream says, and whether it bears tokens. No I/O.

Where the stream counts its tokens (token ids, or usage in every chunk), a chunk bears tokens when the count says so.
Elsewhere the rule is that of ``vllm bench serve`` 0.33: a chunk of completions bears tokens, even with an empty text
(a special token); a chunk of chat does when it has content, reasoning or a tool call, or an empty content without a
role (again a special token). It is widened by ``reasoning_content``, the name that SGLang, TensorRT-LLM and DeepSeek
use, and narrowed by one case: a chunk without text that gives the finish reason ends the answer and bears nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_llmperf.model.outcome import NEVER

Choice = Mapping[str, Any]


def said(choice: Choice) -> tuple[str, bool]:
    """The text of a choice, and whether the form alone says that it bears tokens.

    Raises:
        TypeError: a text that is none.
        AttributeError: a ``delta`` that is no mapping.
    """
    text = choice.get("text")
    if text is None:
        delta = choice.get("delta")
        if not delta:
            return "", False
        return _said_by_delta(delta, ended=bool(choice.get("finish_reason")))
    if not isinstance(text, str):
        raise TypeError("text")
    return text, bool(text) or not choice.get("finish_reason")


def tokens_of(choice: Choice, total: int, before: int) -> tuple[int, bool]:
    """How many tokens a chunk bears, -1 when it does not say; and whether their ids say it.

    Args:
        choice: its choice.
        total: completion tokens so far by the usage in this chunk, -1 without one.
        before: completion tokens before this chunk, -1 where that is not known.
    """
    ids = choice.get("token_ids")
    if ids:
        return len(ids), True
    return (total - before if total >= before and NEVER not in (total, before) else NEVER), False


def _said_by_delta(delta: Mapping[str, Any], *, ended: bool) -> tuple[str, bool]:
    content = delta.get("content")
    text = (delta.get("reasoning_content") or delta.get("reasoning") or "") + (content or "")
    calls = delta.get("tool_calls") or ()
    if call := delta.get("function_call"):
        calls = ({"function": call}, *calls)
    if calls:
        text += "".join(_called(call.get("function") or {}) for call in calls)
    special = content == "" and "role" not in delta and not ended
    return text, bool(text or calls) or special


def _called(function: Mapping[str, Any]) -> str:
    return (function.get("name") or "") + (function.get("arguments") or "")
