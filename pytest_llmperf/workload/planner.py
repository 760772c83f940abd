"""The planner: every request of a run, as bytes and a send time."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import orjson

from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.case import workload_digest
from pytest_llmperf.model.plan import Plan, PlannedRequest
from pytest_llmperf.model.request_fields import RequestFields
from pytest_llmperf.model.suite import Load, Workload
from pytest_llmperf.workload.arrivals import poisson_arrivals_ns
from pytest_llmperf.workload.prompts import distinct_prompts

USUAL_FIELDS = RequestFields()


def plan(workload: Workload, load: Load, *, seed: int, model_id: str, fields: RequestFields = USUAL_FIELDS) -> Plan:
    """The requests of one run; the same arguments give the same bytes, in every process and version of Python.

    The seed is mixed with the definition of workload and load, so that two cases on one server never share prompts.
    A word is one token, and a BOS that the engine puts before them is not counted; behind a chat template only the
    engine can tell, so ``input_tokens`` is None there.

    ``fields`` says which optional fields the server takes; they are no part of what is asked, and of no digest of it.

    Raises:
        UsageError: there are not enough different prompts of this length, or the load's value makes no sense.
    """
    if workload.requests < 1:
        raise UsageError(f"requests: {workload.requests}: at least 1 is needed")
    key = f"{workload_digest(workload, load)}:{seed}"
    prompts = distinct_prompts(workload.requests, workload.input_tokens, Random(f"{key}:prompts"))
    times = _send_times_ns(load, workload.requests, Random(f"{key}:arrivals"))
    return Plan(
        api=workload.api,
        requests=tuple(
            PlannedRequest(
                body=orjson.dumps(_body(workload, prompt, model_id, fields)),
                at_ns=at_ns,
                input_tokens=workload.input_tokens if workload.api == "completions" else None,
                output_tokens=workload.output_tokens,
            )
            for prompt, at_ns in zip(prompts, times, strict=True)
        ),
        load=load,
        seed=seed,
        exact_output=workload.output == "exact",
    )


def _send_times_ns(load: Load, count: int, rng: Random) -> Sequence[int | None]:
    if load.kind == "burst":
        return [0] * count
    if load.value is None or load.value <= 0:
        raise UsageError(f"{load.kind}: {load.value}: a positive number is needed")
    if load.kind == "request_rate":
        return poisson_arrivals_ns(count, load.value, rng)
    return [None] * count


def _body(workload: Workload, prompt: str, model_id: str, fields: RequestFields) -> dict[str, Any]:
    asked: dict[str, Any] = (
        {"prompt": prompt} if workload.api == "completions" else {"messages": [{"role": "user", "content": prompt}]}
    )
    body = {
        "model": model_id,
        **asked,
        "max_tokens": workload.output_tokens,
        "temperature": workload.temperature,
        "stream": True,
    }
    return body | _optional(fields, exact=workload.output == "exact")


def _optional(fields: RequestFields, *, exact: bool) -> dict[str, Any]:
    """The fields that not every server takes; by default those that vLLM, SGLang, TensorRT-LLM and llama.cpp do."""
    asked: dict[str, Any] = {}
    if fields.stream_options:
        asked["stream_options"] = {"include_usage": True}
        if fields.continuous_usage_stats:
            asked["stream_options"]["continuous_usage_stats"] = True
    if fields.ignore_eos and exact:
        asked["ignore_eos"] = True
    if fields.return_token_ids:
        asked["return_token_ids"] = True
    return asked
