"""A job: what one worker process is told, as a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """One planned request; ``index`` is its place in the plan."""

    index: int
    body: str
    at_ns: int | None
    planned_input_tokens: int
    asked_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One worker's share of a plan.

    Attributes:
        url: base of the endpoint.
        path: of the API, below the base.
        api_key_env: the name of the variable with the key; the worker reads it itself, so that no file ever holds it.
        turns: so many requests after another are one conversation; the last one may be shorter.
        concurrency: this worker's share of a closed loop; None for an open one.
        exact_output: whether a request that ends short has failed.
        request_timeout_s: bound on one request, connecting included.
        rows: where to write what happened.
        failed: folder for the raw bytes of failed requests.
        raw: file for the raw bytes of all requests; None for none.
        raw_limit: bytes of it.
    """

    url: str
    path: str
    api_key_env: str | None
    requests: tuple[JobRequest, ...]
    turns: int
    concurrency: int | None
    exact_output: bool
    request_timeout_s: float
    rows: str
    failed: str
    raw: str | None = None
    raw_limit: int = 0

    def write(self, file: Path) -> None:
        """As JSON; a folder whose name is no UTF-8 has half surrogates in it, which only Python's writer escapes."""
        file.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, file: Path) -> Job:
        """The job that ``write`` wrote."""
        fields = json.loads(file.read_bytes())
        fields["requests"] = tuple(JobRequest(**request) for request in fields["requests"])
        return cls(**fields)
