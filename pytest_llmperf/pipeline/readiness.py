"""Readiness: the ladder from a started process to a server that has really generated a token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from pytest_llmperf.clock import Clock

POLL_S = 0.05
PROBE_TIMEOUT_S = 5.0
"""For one answer to a question that costs the server nothing."""

LOADING = frozenset({429, 500, 502, 503, 504})
"""Answers of a server (or of a proxy before it) that is still loading."""

_UNAUTHORIZED = frozenset({401, 403})
_ABSENT = frozenset({404, 405, 501})
_FIRST_TOKENS = 4


class Starting(Protocol):
    """A server on its way up, as the ladder needs it."""

    def address(self) -> str | None:
        """Base URL, None while it is not known."""

    def exit_code(self) -> int | None:
        """Exit code of its process; None while it runs or when the process is not ours."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes

    @property
    def text(self) -> str:
        return self.body[:2000].decode(errors="replace")

    def json(self) -> Any:
        import orjson  # noqa: PLC0415 (not for collection time)

        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None


class Ladder:
    """Climbs until ready: process alive, address known, /health, /v1/models lists the model, one real completion.

    Args:
        starting: the server.
        model: the model id that it must serve.
        api_key_env: name of the variable with the API key, or None.
        start_timeout_s: for all rungs together.
        generation_timeout_s: for the completion, which also has to fit into ``start_timeout_s``.
    """

    def __init__(
        self,
        starting: Starting,
        *,
        model: str,
        api_key_env: str | None,
        start_timeout_s: float,
        generation_timeout_s: float,
        clock: Clock,
    ) -> None:
        self._starting = starting
        self._model = model
        self._headers = headers(api_key_env)
        self._timeout_s = start_timeout_s
        self._generation_timeout_s = generation_timeout_s
        self._clock = clock
        self._deadline = clock.monotonic_ns() + round(start_timeout_s * 1e9)
        self._last = "nothing yet"

    def climb(self) -> str:
        """Base URL of the ready server.

        Raises:
            StartError: a rung did not hold within its time, or the process ended; ``cause`` is "unknown" where only
                the engine's log can tell it.
        """
        url = self._address()
        if not self._healthy(url):
            self._require_models(url, "GET /health is not there and ")
        else:
            self._check_models(url)
        self._generate(url)
        # Whoever answered on a port that was taken is not our engine.
        self._require_process()
        return url
