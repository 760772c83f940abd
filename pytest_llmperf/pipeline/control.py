"""The control plane: short HTTP questions to a server, each with a bound; never used inside a measured window."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_llmperf.telemetry.fetch import NoAnswerError, SilentError, fetch

__all__ = ["Answer", "NoAnswerError", "SilentError", "ask", "headers", "scrubbed"]

_EXCERPT = 2000
_SECRET_LENGTH = 6
"""A shorter key ("EMPTY", "test") is a placeholder, and taking it out would damage model names."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of a whole answer, without the API key; ``location`` is where a redirect leads, or ""."""

    status: int
    body: bytes
    location: str = ""

    @property
    def text(self) -> str:
        """The beginning of the body, for people."""
        return self.body[:_EXCERPT].decode(errors="replace")

    def json(self) -> Any:
        """The body's value, None where it is no JSON."""
        import orjson  # noqa: PLC0415 (not for collection time)

        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None


def headers(api_key_env: str | None) -> dict[str, str]:
    """The authorization, read from the environment at the moment of use and kept nowhere."""
    key = os.environ.get(api_key_env) if api_key_env else None
    return {"Authorization": f"Bearer {key}"} if key else {}


def scrubbed(text: str, api_key_env: str | None) -> str:
    """``text`` with ``***`` for the API key, as it is and as JSON writes it: a server may repeat what it was sent."""
    for form in _forms(api_key_env):
        text = text.replace(form, "***")
    return text


def ask(
    method: str,
    url: str,
    *,
    timeout_s: float,
    api_key_env: str | None = None,
    body: Mapping[str, Any] | None = None,
) -> Answer:
    """One request and its whole answer within ``timeout_s``; see ``telemetry.fetch``. The answer holds no API key.

    Raises:
        NoAnswerError: refused, broken, too large, or a URL that leads nowhere.
        SilentError: not done in time.
    """
    reply = fetch(method, url, timeout_s=timeout_s, headers=headers(api_key_env), body=body)
    content = reply.body
    for form in _forms(api_key_env):
        content = content.replace(form.encode(), b"***")
    return Answer(reply.status, content, scrubbed(reply.location, api_key_env))


def _forms(api_key_env: str | None) -> tuple[str, ...]:
    """How the key may be written, longest first."""
    key = (os.environ.get(api_key_env) or "").strip() if api_key_env else ""
    if len(key) < _SECRET_LENGTH:
        return ()
    escaped = {json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1]}
    forms = {key, *escaped, *(form.replace("/", r"\/") for form in escaped)}
    return tuple(sorted(forms, key=len, reverse=True))
