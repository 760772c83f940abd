"""Readiness: the ladder from a started process to a server that has really generated a token.

Rungs: the process is alive, its address is known, GET /health is 200, GET /v1/models lists the model, one completion
comes back with a token. A server that fails a rung for good ends the climb; one that is still loading is asked again.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmperf.clock import Clock
from pytest_llmperf.errors import StartError
from pytest_llmperf.pipeline.control import Answer, NoAnswerError, SilentError, ask, scrubbed

POLL_S = 0.05
PROBE_TIMEOUT_S = 5.0
"""For one answer that costs the server nothing."""

_FIRST_TOKENS = 4
_OK, _BUSY, _ABSENT, _DENIED = 200, frozenset({429, 503}), frozenset({404, 405, 501}), frozenset({401, 403})
_REDIRECTS = range(300, 400)
_SERVER_ERROR = 500
_SHOWN_MODELS = 10


@dataclass(frozen=True, kw_only=True)
class Climb:
    """One server on its way up.

    Attributes:
        address: its base URL, None while it is not known.
        exit_code: of its process; None while it runs, or when the process is not ours.
        model: the id that it must serve.
        start_timeout_s: bound of all rungs but the last.
        generation_timeout_s: bound of the completion, busy answers included.
    """

    address: Callable[[], str | None]
    exit_code: Callable[[], int | None]
    model: str
    api_key_env: str | None
    start_timeout_s: float
    generation_timeout_s: float
    clock: Clock

    def wait(self) -> str:
        """Base URL of the ready server.

        Raises:
            StartError: it ended, answered wrongly or took too long; ``cause`` is "unknown" where the log must tell.
        """
        try:
            self._climb((self._addressed, self._healthy, self._lists_model), self.start_timeout_s)
            self._climb((self._generates,), self.generation_timeout_s)
        except StartError as error:
            message, evidence = (scrubbed(text, self.api_key_env) for text in (error.message, error.evidence))
            raise StartError(message, cause=error.cause, evidence=evidence) from None
        # On a port that was taken, somebody else may have answered.
        self._require_process()
        return self._url()

    def _climb(self, rungs: Sequence[Callable[[float], str | None]], timeout_s: float) -> None:
        """Try each rung until it says what it waits for no more; all of them within ``timeout_s``."""
        deadline = self.clock.monotonic_ns() + round(timeout_s * 1e9)
        for rung in rungs:
            while (waiting_for := rung((deadline - self.clock.monotonic_ns()) / 1e9)) is not None:
                self._require_process()
                if self.clock.monotonic_ns() >= deadline:
                    raise StartError(f"not ready within {timeout_s:g} s: {waiting_for}")
                self.clock.sleep(POLL_S)

    def _require_process(self) -> None:
        if (code := self.exit_code()) is not None:
            raise StartError(f"the engine {exit_description(code)} before it was ready")

    def _url(self) -> str:
        return self.address() or ""

    def _addressed(self, left_s: float) -> str | None:  # noqa: ARG002 (a rung's signature)
        return None if self.address() is not None else "it has not said where it listens"

    def _healthy(self, left_s: float) -> str | None:
        health = self._get("/health", left_s)
        if isinstance(health, str):
            return health
        if health.status == _OK:
            return None
        if health.status in _BUSY or health.status >= _SERVER_ERROR:
            return f"GET /health says {health.status}"
        models = self._get("/v1/models", left_s)
        if isinstance(models, Answer) and models.status == _OK:
            return None
        if health.status in _DENIED:
            raise self._denied(health.status)
        return f"GET /health says {health.status}, and GET /v1/models does not work either"

    def _lists_model(self, left_s: float) -> str | None:
        models = self._get("/v1/models", left_s)
        if isinstance(models, str):
            return models
        if models.status in _DENIED:
            raise self._denied(models.status)
        if models.status in _ABSENT:
            return None  # the completion will tell
        if models.status != _OK:
            return f"GET /v1/models says {models.status}"
        ids = _model_ids(models.json())
        if ids is None:
            raise StartError("GET /v1/models says 200 and lists no models", cause="arguments", evidence=models.text)
        if self.model not in ids:
            more = f" and {len(ids) - _SHOWN_MODELS} more" if len(ids) > _SHOWN_MODELS else ""
            served = (", ".join(ids[:_SHOWN_MODELS]) or "none") + more
            raise StartError(
                f"it serves no model {self.model!r} but: {served}; model.id must be one", cause="arguments"
            )
        return None

    def _generates(self, left_s: float) -> str | None:
        bound = max(left_s, POLL_S)
        body: dict[str, Any] = {"model": self.model, "max_tokens": _FIRST_TOKENS, "temperature": 0}
        try:
            answer = self._post("/v1/completions", {**body, "prompt": "the"}, bound)
            if answer.status in _ABSENT:
                messages = [{"role": "user", "content": "the"}]
                answer = self._post("/v1/chat/completions", {**body, "messages": messages}, bound)
        except NoAnswerError as error:
            if error.final:
                raise StartError(f"the first completion got no answer: {error}", cause="network") from None
            return f"the first completion got no whole answer: {error}"
        except SilentError:
            raise StartError(
                f"GET /health was fine, and the first completion got no answer within {bound:.3g} s", cause="stall"
            ) from None
        if answer.status in _BUSY:
            return f"the first completion got {answer.status}"
        if answer.status in _DENIED:
            raise self._denied(answer.status)
        if answer.status != _OK or not _has_token(answer.json()):
            raise StartError(f"the first completion got {answer.status} and no token", evidence=answer.text)
        return None

    def _get(self, path: str, left_s: float) -> Answer | str:
        """The answer, or why there is none yet."""
        url, timeout_s = self._url() + path, max(min(left_s, PROBE_TIMEOUT_S), POLL_S)
        try:
            answer = ask("GET", url, timeout_s=timeout_s, api_key_env=self.api_key_env)
        except NoAnswerError as error:
            if error.final:
                raise StartError(f"GET {url}: {error}", cause="network") from None
            return f"nobody answers at {url} ({error})"
        except SilentError:
            return f"GET {url} got no answer within {timeout_s:.3g} s"
        return self._stays(answer, url)

    def _post(self, path: str, body: dict[str, Any], timeout_s: float) -> Answer:
        url = self._url() + path
        return self._stays(ask("POST", url, timeout_s=timeout_s, api_key_env=self.api_key_env, body=body), url)

    def _stays(self, answer: Answer, url: str) -> Answer:
        """The answer, unless it leads elsewhere: the load follows no redirect, so a server behind one is no subject."""
        if answer.status in _REDIRECTS:
            where = f"to {answer.location}" if answer.location else "nowhere"
            raise StartError(f"{url} redirects {where}; name the URL of the server itself", cause="arguments")
        return answer

    def _denied(self, status: int) -> StartError:
        how = f"with the key in {self.api_key_env}" if self.api_key_env else "without a key; name one with api_key_env"
        return StartError(f"it answers {status} {how}", cause="arguments")


def exit_description(code: int) -> str:
    """An exit code as people say it: "exited with code 1", "was ended by SIGKILL"."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _model_ids(listing: Any) -> list[str] | None:
    """The listed ids; None when it is no list of models."""
    entries = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(entries, list):
        return None
    return [str(entry.get("id")) for entry in entries if isinstance(entry, dict)]


def _has_token(completion: Any) -> bool:
    """A completion with at least one generated token: by usage, or by its text where usage is missing."""
    if not isinstance(completion, dict) or "error" in completion:
        return False
    choices, usage = completion.get("choices"), completion.get("usage")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return False
    if isinstance(usage, dict) and "completion_tokens" in usage:
        tokens = usage["completion_tokens"]
        return isinstance(tokens, int) and tokens > 0
    message = choices[0].get("message")
    return bool(choices[0].get("text") or (isinstance(message, dict) and message.get("content")))
