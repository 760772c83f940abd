"""The planner: every request of a run, as bytes and a send time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import orjson

from pytest_llmperf.errors import DataError, UsageError
from pytest_llmperf.model.case import workload_digest
from pytest_llmperf.model.plan import Plan, PlannedRequest
from pytest_llmperf.model.request_fields import RequestFields
from pytest_llmperf.model.suite import Kind, Lengths, Load, Workload
from pytest_llmperf.workload.arrivals import arrivals_ns, ramp_ns, replayed_ns
from pytest_llmperf.workload.ask import Ask
from pytest_llmperf.workload.custom import prompts_of_file
from pytest_llmperf.workload.deal import Deal
from pytest_llmperf.workload.lengths import draw_lengths
from pytest_llmperf.workload.material import Arrival, Material, Tokenizer
from pytest_llmperf.workload.prompts import distinct_prompts
from pytest_llmperf.workload.sharegpt import conversations
from pytest_llmperf.workload.token_ids import distinct_ids, shared_prefix_ids

_NOTHING = Material()
USUAL_FIELDS = RequestFields()


def plan(
    workload: Workload,
    load: Load,
    *,
    seed: int,
    model_id: str,
    material: Material = _NOTHING,
    place: Deal | None = None,
    fields: RequestFields = USUAL_FIELDS,
) -> Plan:
    """The requests of one run; the same arguments give the same bytes, in every process and version of Python.

    The seed is mixed with the definition of workload and load, so that two cases on one server never share prompts.
    Lengths depend on the definition alone: every run of a case asks for the same work. A word is one token, and a BOS
    that the engine puts before them is not counted; behind a chat template only the engine can tell, so
    ``input_tokens`` is None there.

    Args:
        workload: what to ask.
        load: when.
        seed: of this run alone.
        model_id: the name that requests carry.
        material: what the workload's kind needs from files.
        place: of this run among those that its server has seen; the first one by default.
        fields: which optional fields the server takes; they are no part of what is asked, and of no digest of it.

    Raises:
        UsageError: there are not enough different prompts of this length, or the load makes no sense.
        DataError: the file has too few prompts, or some that do not fit the API.
    """
    if workload.requests < 1:
        raise UsageError(f"requests: {workload.requests}: at least 1 is needed")
    definition = workload_digest(workload, load)
    key = f"{definition}:{seed}"
    place = place or Deal(seed)
    material = replace(material, arrivals=_replayed(load, material, workload.requests))
    asks = _MAKERS[workload.kind](workload, material, definition, key, place)
    times = _times_of_turns(load, workload, Random(f"{key}:arrivals"), material.arrivals)
    return Plan(
        api=workload.api,
        requests=tuple(
            PlannedRequest(
                body=orjson.dumps(_body(workload, ask, model_id, fields)),
                at_ns=at_ns,
                input_tokens=ask.input_tokens if workload.api == "completions" else None,
                output_tokens=ask.output_tokens,
            )
            for ask, at_ns in zip(asks, times, strict=True)
        ),
        load=load,
        seed=_seed_of(workload.kind, seed, place),
        exact_output=workload.output == "exact",
        turns=workload.turns or 1,
    )


def _seed_of(kind: Kind, seed: int, place: Deal) -> int:
    """The seed that people can make the same prompts with: vLLM's ``--seed`` where its rules are followed."""
    return {"random": place.run_seed, "sharegpt": place.seed}.get(kind, seed)


def _words(workload: Workload, material: Material, definition: str, key: str, _: Deal) -> list[Ask]:
    inputs, outputs = _lengths(workload, material, definition)
    prompts = distinct_prompts(inputs, Random(f"{key}:prompts"))
    return _generated(prompts, inputs, outputs)


def _token_ids(workload: Workload, material: Material, definition: str, key: str, _: Deal) -> list[Ask]:
    inputs, outputs = _lengths(workload, material, definition)
    return _generated(distinct_ids(inputs, _vocabulary(material), f"{key}:prompts"), inputs, outputs)


def _shared_prefix(workload: Workload, material: Material, definition: str, key: str, _: Deal) -> list[Ask]:
    inputs, outputs = _lengths(workload, material, definition)
    prefix, groups = workload.prefix_tokens or 0, workload.groups or 1
    prompts = shared_prefix_ids(inputs, prefix, groups, _vocabulary(material), f"{key}:prompts")
    return _generated(prompts, inputs, outputs)


def _custom(workload: Workload, material: Material, _: str, __: str, place: Deal) -> list[Ask]:
    return prompts_of_file(workload, material.entries, place)


def _sharegpt(workload: Workload, material: Material, _: str, __: str, place: Deal) -> list[Ask]:
    return conversations(workload, material.entries, _tokenizer(material), place)


def _random(workload: Workload, material: Material, _: str, __: str, place: Deal) -> list[Ask]:
    from pytest_llmperf.workload.vllm_random import random_text  # noqa: PLC0415 (numpy)

    return random_text(workload, _tokenizer(material), place)


_MAKERS: dict[Kind, Callable[[Workload, Material, str, str, Deal], list[Ask]]] = {
    "words": _words,
    "token-ids": _token_ids,
    "shared-prefix": _shared_prefix,
    "custom": _custom,
    "random": _random,
    "sharegpt": _sharegpt,
}


def _lengths(workload: Workload, material: Material, definition: str) -> tuple[list[int], list[int]]:
    """What the trace says; the workload's own lengths where there is none, or it says nothing."""
    inputs = _drawn(workload.input_tokens, workload.requests, f"{definition}:input_tokens")
    outputs = _drawn(workload.output_tokens, workload.requests, f"{definition}:output_tokens")
    told = material.arrivals or [Arrival(at_s=0)] * workload.requests
    return (
        [arrival.input_tokens or drawn for arrival, drawn in zip(told, inputs, strict=True)],
        [arrival.output_tokens or drawn for arrival, drawn in zip(told, outputs, strict=True)],
    )


def _replayed(load: Load, material: Material, count: int) -> Sequence[Arrival]:
    """The lines of the trace that a run replays: the first ones."""
    if load.kind != "trace":
        return ()
    if len(material.arrivals) < count:
        raise DataError(f"the trace has {len(material.arrivals)} lines, requests: {count} asks for more; lower it")
    return material.arrivals[:count]


def _drawn(wanted: int | Lengths | None, count: int, key: str) -> list[int]:
    if wanted is None:
        raise UsageError("input_tokens and output_tokens are needed")
    return draw_lengths(wanted, count, Random(key))


def _generated(prompts: Sequence[str | list[int]], inputs: Sequence[int], outputs: Sequence[int]) -> list[Ask]:
    return [
        Ask(prompt=prompt, input_tokens=length, output_tokens=asked)
        for prompt, length, asked in zip(prompts, inputs, outputs, strict=True)
    ]


def _vocabulary(material: Material) -> Sequence[int]:
    if material.vocabulary is None:
        raise DataError("the model's vocabulary is not known")
    return material.vocabulary.plain


def _tokenizer(material: Material) -> Tokenizer:
    if material.tokenizer is None:
        raise DataError("the model's tokenizer is not there")
    return material.tokenizer


def _times_of_turns(load: Load, workload: Workload, rng: Random, arrivals: Sequence[Arrival]) -> Sequence[int | None]:
    """A conversation starts when the load says; its other turns have no time of their own."""
    turns = workload.turns or 1
    starts = _send_times_ns(load, math.ceil(workload.requests / turns), rng, arrivals)
    times = [time for start in starts for time in (start, *[None] * (turns - 1))]
    return times[: workload.requests]


def _send_times_ns(load: Load, count: int, rng: Random, arrivals: Sequence[Arrival]) -> Sequence[int | None]:
    burstiness = math.inf if load.burstiness == "constant" else load.burstiness or 1.0
    if load.kind == "burst":
        return [0] * count
    if load.kind == "ramp" and load.ramp is not None:
        return ramp_ns(count, load.ramp, burstiness, rng)
    if load.kind == "trace" and load.trace is not None:
        return replayed_ns([arrival.at_s for arrival in arrivals], load.trace.speed)
    if load.value is None or load.value <= 0:
        raise UsageError(f"{load.kind}: {load.value}: a positive number is needed")
    if load.kind == "request_rate":
        return arrivals_ns(count, load.value, burstiness, rng)
    return [None] * count


def _body(workload: Workload, ask: Ask, model_id: str, fields: RequestFields) -> dict[str, Any]:
    asked: dict[str, Any] = {"prompt": ask.prompt}
    if workload.api == "chat":
        asked = {"messages": ask.messages or [{"role": "user", "content": ask.prompt}]}
    body = {
        "model": model_id,
        **asked,
        "max_tokens": ask.output_tokens,
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
