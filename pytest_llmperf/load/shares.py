"""Shares: how a plan is split over worker processes. No I/O."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from pytest_llmperf.load import raw_file
from pytest_llmperf.load.job import Job, JobRequest
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.outcome import NEVER
from pytest_llmperf.model.plan import Plan

_PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}

_CHUNKS_PER_S_AND_WORKER = 5_000
"""A worker can read ten times as many, but an engine sends the tokens of a batch together, and the last one of a burst
is stamped when all others have been read: of 125 streams, about 1 ms later."""

_CHUNKS_PER_S_AND_STREAM = 40
"""What a stream is taken to bring where the load does not say."""


def worker_count(plan: Plan, most: int) -> int:
    """As many workers as the expected rate of chunks needs, at least one and at most ``most``."""
    if plan.load.scheduled:
        expected = _send_rate(plan) * max(request.output_tokens for request in plan.requests)
    else:
        streams = len(plan.requests) if plan.load.value is None else min(plan.load.value, len(plan.requests))
        expected = streams * _CHUNKS_PER_S_AND_STREAM
    return max(1, min(math.ceil(expected / _CHUNKS_PER_S_AND_WORKER), most))


def _send_rate(plan: Plan) -> float:
    """Requests per second of an open loop, where it is busiest."""
    if plan.load.value is not None:
        return plan.load.value
    if plan.load.ramp is not None:
        return max(plan.load.ramp.start, plan.load.ramp.end)
    times = sorted(request.at_ns or 0 for request in plan.requests)
    return max(bisect_left(times, start + 1_000_000_000) - i for i, start in enumerate(times))


def split(
    plan: Plan,
    endpoint: Endpoint,
    folder: Path,
    *,
    workers: int,
    request_timeout_s: float,
    keep_raw: bool = False,
    cores: Sequence[int] = (),
) -> list[Job]:
    """One job a worker: conversation i goes to worker i mod S, and a closed loop's concurrency is dealt out evenly.

    More lanes than conversations would only wait for nothing: there are none. Where there are ``cores``, each worker
    has one of them, in turn.
    """
    closed = plan.load.kind == "concurrency"
    conversations = math.ceil(len(plan.requests) / plan.turns)
    concurrency = int(min(plan.load.value or 0, conversations)) if closed else conversations
    count = min(workers, conversations, concurrency)
    requests = [
        JobRequest(
            index=index,
            body=request.body.decode(),
            at_ns=request.at_ns,
            planned_input_tokens=NEVER if request.input_tokens is None else request.input_tokens,
            asked_tokens=request.output_tokens,
        )
        for index, request in enumerate(plan.requests)
    ]
    return [
        Job(
            url=endpoint.url,
            path=_PATHS[plan.api],
            api_key_env=endpoint.api_key_env,
            requests=tuple(request for request in requests if request.index // plan.turns % count == worker),
            turns=plan.turns,
            concurrency=concurrency // count + (worker < concurrency % count) if closed else None,
            exact_output=plan.exact_output,
            request_timeout_s=request_timeout_s,
            rows=str(folder / f"worker-{worker}.json"),
            failed=str(folder / "failed"),
            raw=str(folder / raw_file.FOLDER / f"worker-{worker}.raw") if keep_raw else None,
            raw_limit=raw_file.RAW_LIMIT // count,
            core=cores[worker % len(cores)] if cores else None,
        )
        for worker in range(count)
    ]
