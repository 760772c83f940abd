"""The planner: every request of a run, as bytes and a send time."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import orjson

from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.case import workload_digest
from pytest_llmperf.model.plan import Plan, PlannedRequest
from pytest_llmperf.model.suite import Load, Workload
from pytest_llmperf.workload.arrivals import poisson_arrivals_ns
from pytest_llmperf.workload.prompts import distinct_prompts


def plan(workload: Workload, load: Load, *, seed: int, model_id: str) -> Plan:
    """The requests of one run; the same arguments give the same bytes, in every process and version of Python.

    The seed is mixed with the definition of workload and load, so that two cases on one server never share prompts.
    A word is one token, and a BOS that the engine puts before them is not counted; behind a chat template only the
    engine can tell, so ``input_tokens`` is None there.

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
                body=orjson.dumps(_body(workload, prompt, model_id)),
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


def _body(workload: Workload, prompt: str, model_id: str) -> dict[str, Any]:
    asked: dict[str, Any] = (
        {"prompt": prompt} if workload.api == "completions" else {"messages": [{"role": "user", "content": prompt}]}
    )
    body = {
        "model": model_id,
        **asked,
        "max_tokens": workload.output_tokens,
        "temperature": workload.temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    # Not OpenAI's, but understood by vLLM, SGLang, TensorRT-LLM and llama.cpp alike.
    return body | {"ignore_eos": True} if workload.output == "exact" else body
