"""The keys of a suite file: which there are, what type each has, and what each means to people.

Everything is optional here because ``extends`` and ``matrix`` may supply it; what is missing in the end is found where
arms, workloads and gates are resolved. The descriptions go into the JSON Schema that editors show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidatorFunctionWrapHandler, WrapValidator

from pytest_llmperf.model.finding import Policy
from pytest_llmperf.model.suite import MOST, Keep, Kind, Rules
from pytest_llmperf.suitefile.values import (
    Burstiness,
    Count,
    Day,
    Digest,
    Length,
    Margin,
    Names,
    Rate,
    Scalar,
    Seconds,
    Share,
    Shares,
    Text,
    Times,
    Variation,
)


def _about(text: str) -> Any:
    return Field(default=None, description=text)


class Keys(BaseModel):
    """Base of all mappings in a suite file: unknown keys are mistakes, no value is converted silently."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        defer_build=True,  # only SuiteKeys validates; building each of its parts too would double the import time
    )


class ModelKeys(Keys):
    """``model:`` of a suite or an arm; further keys belong to the engine's adapter."""

    model_config = ConfigDict(extra="allow")

    id: Text | None = _about("Name of the model, as sent in requests.")
    path: Text | None = _about("Where the weights are; may hold ${VAR}.")
    weights: Literal["real", "dummy", "synthetic"] | None = _about("Which weights are loaded; default real.")


class HardwareKeys(Keys):
    """``hardware:`` as a mapping."""

    gpu: Text | None = _about("A part of the GPU's name, such as H200.")
    count: Count | None = _about("How many of them; default 1.")


class ArmKeys(Keys):
    """One entry of ``engines:``; further keys belong to the engine's adapter."""

    model_config = ConfigDict(extra="allow")

    engine: Text | None = _about("Which engine: a name of the engine registry.")
    extends: Text | None = _about("Another arm whose keys this one inherits, except default and variant_of.")
    variant_of: Text | None = _about("The arm whose case ids and baselines this one is judged by.")
    default: bool | None = _about("false: runs only when named by --llmperf-engine; default true.")
    model: ModelKeys | None = _about("Changes to the suite's model.")
    args: list[str] | None = _about("Command line arguments, added to those of the adapter.")
    more_args: list[str] | None = Field(default=None, alias="args+", description="Added to the inherited args.")
    env: dict[str, str] | None = _about("Environment variables of the engine; merged over inherited ones.")
    expect: dict[str, Scalar] | None = _about("What must be in effect once it runs; merged over what is inherited.")
    start_timeout: Seconds | None = _about("How long the engine may take until it is ready; default 10m.")
    only: Names | None = _about("Run this arm under these workloads only.")


class RampKeys(Keys):
    """``ramp:``."""

    from_: Rate = Field(alias="from", description="Requests per second at the start.")
    to: Rate = Field(description="Requests per second at the end.")
    shape: Literal["linear", "exponential"] = Field(default="linear", description="How the rate changes.")


class TraceKeys(Keys):
    """``trace:``."""

    path: Text = Field(description="JSONL with timestamps; may hold ${VAR}; a relative one is beside the suite.")
    speed: Rate = Field(default=1.0, description="How many times as fast as recorded.")
    sha256: Digest | None = _about("Of the trace: it must be this one.")


class LoadKeys(Keys):
    """A load: exactly one of these; burstiness goes with two of them."""

    concurrency: Count | None = _about("Closed loop: this many requests in flight, the next starts when one ends.")
    request_rate: Rate | None = _about("Open loop: Poisson arrivals, this many per second.")
    burst: Literal[True] | None = _about("Everything at once.")
    ramp: RampKeys | None = _about("Open loop: a rate that changes over the run.")
    trace: TraceKeys | None = _about("Open loop: recorded arrivals.")
    burstiness: Burstiness | None = _about("Of request_rate and ramp; default 1, Poisson arrivals.")


class WorkloadKeys(LoadKeys):
    """One entry of ``workloads:``; may hold a load of its own."""

    kind: Kind | None = _about("How prompts are made; default token-ids.")
    extends: Text | None = _about("Another workload whose keys this one inherits.")
    requests: Count | None = _about("Requests per run.")
    input_tokens: Length | None = _about("Length of each prompt (ISL), or a distribution of lengths.")
    output_tokens: Length | None = _about("Tokens asked for per request (OSL), or a distribution of lengths.")
    output: Literal["exact", "natural"] | None = _about("exact (default): a request that ends short is failed.")
    api: Literal["completions", "chat"] | None = _about("Which OpenAI API is called; default completions.")
    temperature: Annotated[float, Field(ge=0)] | None = _about("Sampling temperature; default 0.")
    vocab: Annotated[int, Field(ge=2, le=MOST)] | None = _about(
        "Token ids to draw from; default: by the files of model.path."
    )
    prefix_tokens: Count | None = _about("The part of input_tokens that a group of prompts shares.")
    groups: Count | None = _about("Of shared-prefix: how many different prefixes; default 1.")
    range_ratio: Annotated[float, Field(ge=0, lt=1)] | None = _about("Of random: lengths vary by this share.")
    rules: Rules | None = _about("Of random and sharegpt: the vLLM that makes the same prompts; default vllm-0.32.0.")
    path: Text | None = _about("The data file; may hold ${VAR}; a relative one is beside the suite.")
    sha256: Digest | None = _about("Of the data file: it must be this one.")
    oversample: bool | None = _about("Whether a data file that is too short may repeat its prompts; default false.")
    turns: Annotated[int, Field(ge=2)] | None = _about("Of words in a chat: requests per conversation; default 1.")
    expect_prefix_hits: Shares | None = _about("Share of prompt tokens from the prefix cache; default [0, 1%].")


class MatrixKeys(Keys):
    """``matrix:``: every value makes a case; each becomes part of the case's id."""

    input_tokens: Annotated[list[Count], Field(min_length=1)] | None = _about("Values for every workload.")
    output_tokens: Annotated[list[Count], Field(min_length=1)] | None = _about("Values for every workload.")
    requests: Annotated[list[Count], Field(min_length=1)] | None = _about("Values for every workload.")
    concurrency: Annotated[list[Count], Field(min_length=1)] | None = _about("Loads, named concurrency-N.")
    request_rate: Annotated[list[Rate], Field(min_length=1)] | None = _about("Loads, named request_rate-R.")


class GateKeys(Keys):
    """One entry of ``gates:`` as a mapping."""

    margin: Margin | None = _about(
        "The loss that must not pass, at most 90%, or auto: by the calibration; default by metric."
    )
    reference: Text | None = _about("The arm to compare with in the same session; default: the stored baseline.")
    cv: Variation | None = _about("Declared variation between runs, at most 50%; 0 declares an exact count.")
    only: Names | None = _about("Judge this metric for these arms and workloads only.")


class RelationKeys(Keys):
    """One promise of an arm in ``relations:``."""

    metric: Text | None = _about("The metric that is compared.")
    vs: Text | None = _about("The arm to compare with in the same session.")
    at_least: Times | None = _about("How many times as good it must be: 1.1 for a tenth better; default: no worse.")
    margin: Margin | None = _about("The loss that must not pass, at most 90%; default by metric.")
    only: Names | None = _about("Compare under these workloads only.")


class FailureKeys(Keys):
    """``failed_requests:``."""

    allowed: Share | None = _about("The share of requests that an engine in order may lose; default 0.1%.")
    limit: Share | None = _about("The share that must be excluded for PASSED, at most 50%; default 1%.")


class QuarantineKeys(Keys):
    """One entry of ``quarantine:``."""

    cases: Text | None = _about("The id of a case, or a pattern of ids with * and ? that names an arm or a workload.")
    metrics: Names | None = _about("The metrics whose red does not count; default: all.")
    owner: Text | None = _about("Who ends it.")
    why: Text | None = _about("The reason.")
    until: Day | None = _about("The last day on which it holds, such as 2026-12-24.")


class PreconditionKeys(Keys):
    """What is expected of one check, as a mapping."""

    require: Scalar | None = _about("What must be; metrics are INVALID where it is not.")
    warn: Scalar | None = _about("What should be; shown where it is not.")
    policy: Policy | None = _about(
        "What a failure means, where the check's own rule or the baseline says what is right."
    )
    allow: Names | None = _about("Of foreign_processes: programs that may use the GPUs.")
    reason: Text | None = _about("Why this suite is another case; shown with the check.")


class WarmupKeys(Keys):
    """``warmup:``."""

    requests: Count | None = _about("Requests per warm-up run; default 8.")
    at_most: Seconds | None = _about("Bound of the whole warm-up; default 5m.")


class SloKeys(Keys):
    """``slo:``; a request is good when it keeps all of them."""

    ttft: Seconds | None = _about("Longest time to the first token.")
    tpot: Seconds | None = _about("Longest time per output token.")
    e2el: Seconds | None = _about("Longest end-to-end latency.")


class TelemetryKeys(Keys):
    """``telemetry:`` as a mapping."""

    off: Literal[True] | None = _about("No looks at all.")
    interval: Seconds | None = _about("How often each GPU is looked at; default 500ms, at least 100ms.")


def _short(words: dict[str, Any], wrap: str | None, otherwise: str) -> Callable[[Any], Any]:
    """Turns the short form of a section into its mapping: one of ``words``, or any scalar under the key ``wrap``."""

    def expand(value: Any) -> Any:
        if isinstance(value, dict):
            return value
        if isinstance(value, str) and value in words:
            return words[value]
        if wrap is not None and not isinstance(value, list):
            return {wrap: value}
        raise ValueError(f"must be {otherwise}")

    return expand


_LOAD_FORMS = "burst, {concurrency: N}, {request_rate: R}, {ramp: {...}} or {trace: {...}}"
DefaultLoad = Annotated[LoadKeys, BeforeValidator(_short({"burst": {"burst": True}}, None, _LOAD_FORMS))]
Requirement = Annotated[
    HardwareKeys | None, BeforeValidator(_short({"any": None}, None, "any, or {gpu: NAME, count: N}"))
]
Telemetry = Annotated[TelemetryKeys, BeforeValidator(_short({"off": {"off": True}}, None, "off, or {interval: 500ms}"))]
GateEntry = Annotated[GateKeys, BeforeValidator(_short({}, "margin", "a margin, or {margin: M, ...}"))]


_POLICIES: dict[str, Any] = {policy: {"policy": policy} for policy in get_args(Policy)}
PreconditionEntry = Annotated[
    PreconditionKeys, BeforeValidator(_short(_POLICIES, None, f"{', '.join(_POLICIES)}, or {{require: VALUE}}"))
]


class PreconditionsKeys(Keys):
    """``preconditions:``; further keys are the names of checks."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, PreconditionEntry]

    strict: bool | None = _about("Whether a required check that cannot be read is a failure; default false.")
    env: dict[str, PreconditionEntry] | None = _about("Variables of the engine's environment, by name.")


def _listed(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """One relation as a list of one; what is wrong with it keeps the path that is written, which has no place."""
    if isinstance(value, dict):
        return [RelationKeys.model_validate(value)]
    if isinstance(value, list):
        return handler(value)
    raise ValueError("must be a relation, such as {metric: output_throughput, vs: ARM}, or a list of them")


Relations = Annotated[list[RelationKeys], Field(min_length=1), WrapValidator(_listed)]


class SuiteKeys(Keys):
    """The top of a suite file."""

    suite: Text | None = _about("Name of the suite; part of where its baselines are.")
    why: Text | None = _about("What the suite protects, in one sentence.")
    model: ModelKeys | None = _about("The model that all arms serve, unless they change it.")
    hardware: Requirement = _about("any (default), or what the suite needs.")
    stall_timeout: Seconds | None = _about("No byte on any stream for this long is a stall; default 300s.")
    request_timeout: Seconds | None = _about("How long one request may take; default 30m.")
    engines: dict[str, ArmKeys] | None = _about("The arms: named ways of running an engine.")
    workloads: dict[str, WorkloadKeys] | None = _about("What is asked of the engine, by name.")
    load: DefaultLoad | None = _about("The load of workloads that have none of their own.")
    loads: dict[str, LoadKeys] | None = _about("Named loads: each workload without its own runs under each.")
    matrix: MatrixKeys | None = _about("Values that multiply workloads and loads.")
    gates: dict[str, GateEntry] | None = _about("The metrics that are judged, by name.")
    relations: dict[str, Relations] | None = _about("What an arm promises beside another one, by arm.")
    preconditions: PreconditionsKeys | None = _about("What is expected of the machine, by check; default: by hardware.")
    failed_requests: FailureKeys | None = _about("How many requests may fail; default: none.")
    quarantine: list[QuarantineKeys] | None = _about("Cases whose red is known and does not count until a day.")
    budget: Seconds | None = _about("Wall time that the suite may take in one session; default: any.")
    slo: SloKeys | None = _about("Latency limits; goodput counts the requests within all of them.")
    warmup: WarmupKeys | None = _about("Load before the measured window.")
    keep_raw: Keep | None = _about("Raw responses to keep: of the first failed requests (default), or of all.")
    telemetry: Telemetry | None = _about("Looks at the GPUs of the suite while they are measured; off for none.")
