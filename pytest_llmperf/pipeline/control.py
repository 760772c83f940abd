"""The control plane: short HTTP questions to a server, each with a bound; never used inside a measured window."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_llmperf.clock import Clock

_EXCERPT = 2000


class NoAnswerError(Exception):
    """Nobody listens, or the connection broke before the answer was whole."""


class SilentError(Exception):
    """The connection is there and the answer did not come in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body of a whole answer."""

    status: int
    body: bytes

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


def ask(
    method: str,
    url: str,
    *,
    timeout_s: float,
    clock: Clock,
    api_key_env: str | None = None,
    body: Mapping[str, Any] | None = None,
) -> Answer:
    """One request and its whole answer within ``timeout_s``, also from a server that sends byte by byte.

    Raises:
        NoAnswerError: refused or broken.
        SilentError: not done in time.
    """
    import requests  # noqa: PLC0415 (not for collection time)

    deadline = clock.monotonic_ns() + timeout_s * 1e9
    try:
        with requests.Session() as session:
            # No proxy and no .netrc: the load goes straight to the server too.
            session.trust_env = False
            with session.request(
                method, url, json=body, headers=headers(api_key_env), timeout=timeout_s, stream=True
            ) as answer:
                parts = []
                # By bytes: a larger piece would be waited for, and these answers are short.
                for part in answer.iter_content(chunk_size=1):
                    parts.append(part)
                    if clock.monotonic_ns() > deadline:
                        raise SilentError
                return Answer(answer.status_code, b"".join(parts))
    except requests.Timeout:
        raise SilentError from None
    except requests.RequestException as error:
        if "timed out" in str(error).lower():  # in the middle of a body requests says ConnectionError for it
            raise SilentError from None
        raise NoAnswerError from None
