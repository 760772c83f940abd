"""The external engine: a server that somebody else started and that speaks OpenAI's completions or chat."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from pytest_llmperf.engines import prefix_cache, speculation
from pytest_llmperf.engines.base import Ask, EngineOptions
from pytest_llmperf.engines.resolved import flattened
from pytest_llmperf.model.acceptance import Acceptance
from pytest_llmperf.model.command import Command
from pytest_llmperf.model.counters import Counters
from pytest_llmperf.model.prefix_hits import PrefixHits
from pytest_llmperf.model.request_fields import RequestFields
from pytest_llmperf.model.suite import Arm

_INFO_PAGES = ("/server_info?config_format=json", "/get_server_info", "/props")
"""SGLang has its resolved arguments at the first, which the query does not disturb; so has vLLM where it is allowed."""


class FieldOptions(BaseModel):
    """``request_fields``: what is sent beside the fields that every server takes; as in ``model.request_fields``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    stream_options: bool = True
    ignore_eos: bool = True
    continuous_usage_stats: bool = False
    return_token_ids: bool = False

    @model_validator(mode="after")
    def _part_of_stream_options(self) -> Self:
        if self.continuous_usage_stats and not self.stream_options:
            raise ValueError("continuous_usage_stats is a part of stream_options; send both or neither")
        return self


class ExternalOptions(EngineOptions):
    """Where the server is, and what it takes.

    Attributes:
        url: base URL; a trailing ``/v1`` is cut off.
        api_key_env: NAME of the environment variable that holds the API key. The key itself belongs in no file.
        request_fields: a gateway may refuse some that are sent by default; vLLM and SGLang take all of them.
    """

    VARIABLE_FIELDS: ClassVar[frozenset[str]] = frozenset({"url"})

    url: str
    api_key_env: str | None = None
    request_fields: FieldOptions = FieldOptions()

    @field_validator("url")
    @classmethod
    def _base(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("must be an http or https URL such as http://127.0.0.1:8000")
        if parts.username or parts.password:
            raise ValueError("must not hold credentials; name a variable with api_key_env")
        if parts.port == 0:  # urlsplit itself refuses what is above 65535
            raise ValueError("port 0 is nobody's; name the server's")
        if parts.query or parts.fragment:
            raise ValueError("must end with the path: the requests' own paths are added to it, no ? and no #")
        return url.rstrip("/").removesuffix("/v1")


class ExternalShape(EngineOptions):
    """Nothing: the model is whatever the server serves under ``model.id``."""


class External:
    """Attach to ``url``; start and stop nothing. Acceptance comes from whatever counters its /metrics shows."""

    Options: ClassVar[type[EngineOptions]] = ExternalOptions
    Shape: ClassVar[type[EngineOptions]] = ExternalShape

    def unavailable(self, arm: Arm) -> str | None:
        """The key's variable is not set."""
        name = _options(arm).api_key_env
        if name is not None and not os.environ.get(name):
            return f"the environment variable {name} (api_key_env) is not set"
        return None

    def prepare(self, arm: Arm, folder: Path) -> None:
        """Nothing to make."""

    def command(self, arm: Arm, folder: Path) -> Command | None:  # noqa: ARG002 (the contract's signature)
        """Somebody else runs the server."""
        return None

    def address(self, arm: Arm, folder: Path) -> str | None:  # noqa: ARG002
        """The arm's ``url``."""
        return _options(arm).url

    def fixed_port(self, arm: Arm) -> int | None:  # noqa: ARG002
        """No port of ours."""
        return None

    def elsewhere(self, arm: Arm) -> str | None:
        """The URL's host, unless it is a loopback name or address."""
        host = urlsplit(_options(arm).url).hostname or ""
        return None if host in {"localhost", "::1"} or host.startswith("127.") else host

    def api_key_env(self, arm: Arm) -> str | None:
        """The arm's ``api_key_env``."""
        return _options(arm).api_key_env

    def request_fields(self, arm: Arm) -> RequestFields:
        """The arm's ``request_fields``."""
        return RequestFields(**_options(arm).request_fields.model_dump())

    def acceptance(self, arm: Arm, before: Counters, after: Counters) -> Acceptance | None:  # noqa: ARG002
        """From vLLM's or llama.cpp's counters."""
        return speculation.acceptance(before, after)

    def prefix_hits(self, arm: Arm, before: Counters, after: Counters) -> PrefixHits | None:  # noqa: ARG002
        """From vLLM's, SGLang's or llama.cpp's counters."""
        return prefix_cache.prefix_hits(before, after)

    def with_less_acceptance(self, arm: Arm, loss: float) -> Arm | None:  # noqa: ARG002
        """Somebody else runs it."""
        return None

    def identity(self, arm: Arm) -> Mapping[str, str]:  # noqa: ARG002
        """Only that it is not ours: what runs behind a URL cannot be read without it."""
        return {"engine": "external"}

    def in_effect(self, arm: Arm, ask: Ask) -> Mapping[str, str] | None:  # noqa: ARG002
        """By the first page that there is: SGLang's, vLLM's of development mode, SGLang's of old, llama.cpp's."""
        for path in _INFO_PAGES:
            if isinstance(said := ask(path), dict):
                return flattened(said)
        return None

    def classify(self, log: str) -> str | None:  # noqa: ARG002
        """There is no log to read."""
        return None


def _options(arm: Arm) -> ExternalOptions:
    return ExternalOptions.model_validate(arm.options)
