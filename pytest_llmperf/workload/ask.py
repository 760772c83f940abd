"""An ask: the content of one request, before it is put into the words of an API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request.

    Attributes:
        prompt: text or token ids; "" where there are messages.
        messages: a chat.
        input_tokens: length of the prompt by our own count; None where only the engine can tell.
        output_tokens: how many tokens to ask for.
    """

    prompt: str | Sequence[int] = ""
    messages: Sequence[Mapping[str, Any]] = ()
    input_tokens: int | None = None
    output_tokens: int
