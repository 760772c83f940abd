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


def said_by_delta(choice: Mapping[str, Any], *, ended: bool) -> tuple[str, bool]:
    """The text of a choice of chat, and whether its form alone says that it bears tokens.

    Args:
        choice: of a chunk.
        ended: whether it gives the finish reason.

    Raises:
        TypeError: a text that is none, of completions too.
        AttributeError: a ``delta`` that is no mapping.
    """
    if choice.get("text") is not None:
        raise TypeError("text")
    delta = choice.get("delta")
    if not delta:
        return "", False
    content = delta.get("content")
    text = (delta.get("reasoning_content") or delta.get("reasoning") or "") + (content or "")
    calls = delta.get("tool_calls") or ()
    if call := delta.get("function_call"):
        calls = ({"function": call}, *calls)
    if calls:
        text += "".join(_called(call.get("function") or {}) for call in calls)
    special = content == "" and not delta.get("role") and not ended
    return text, text != "" or bool(calls) or special


def _called(function: Mapping[str, Any]) -> str:
    return (function.get("name") or "") + (function.get("arguments") or "")
