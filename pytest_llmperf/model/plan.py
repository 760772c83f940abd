"""A plan: the requests of one run, as bodies and send times."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from pytest_llmperf.model.suite import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRequest:
    """One request.

    Attributes:
        body: the JSON body, rendered before the clock starts.
        at_ns: when to send it, after the start of the run; None in a closed loop, and for a turn that follows another.
        input_tokens: the client's own count, or None where only the engine can tell.
        output_tokens: how many tokens are asked for.
    """

    body: bytes
    at_ns: int | None
    input_tokens: int | None
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All requests of one run; the same case and seed give the same plan, byte for byte.

    Attributes:
        turns: so many requests after another are one conversation: each has only what the user says anew, and is
            sent, with all that was said before, when the one before it was answered. The last one may be shorter.
    """

    api: Literal["completions", "chat"]
    requests: tuple[PlannedRequest, ...]
    load: Load
    seed: int
    exact_output: bool
    turns: int = 1

    @property
    def digest(self) -> str:
        """``sha256:`` over all bodies in order."""
        total = hashlib.sha256()
        for request in self.requests:
            total.update(len(request.body).to_bytes(8, "big"))
            total.update(request.body)
        return "sha256:" + total.hexdigest()
