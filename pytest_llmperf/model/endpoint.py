"""An endpoint: where a ready engine listens."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_llmperf.model.request_fields import RequestFields


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An OpenAI-compatible server.

    Attributes:
        url: base without a trailing slash and without ``/v1``.
        model: the id to put into requests.
        fields: the optional request fields that it takes.
        api_key_env: the NAME of the environment variable that holds the key; the key itself is never stored.
    """

    url: str
    model: str
    api_key_env: str | None = None
    fields: RequestFields = field(default_factory=RequestFields)
