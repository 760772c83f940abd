"""What a suite file says, after defaults, ``extends`` and ``${VAR}`` are resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_llmperf.errors import Mistake
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.quarantine import Quarantine
from pytest_llmperf.model.slo import Slo

MOST = 10_000_000
"""Of every count: longer than any context, more than a day of requests; beyond it a slip of the finger is likelier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The model that an engine serves.

    ``shape`` holds what only some engines understand (the embedded engine's layers, width and mtp_damage); the
    engine's adapter validates it.
    """

    id: str
    path: str | None = None
    weights: Literal["real", "dummy", "synthetic"] = "real"
    shape: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way of running an engine: what a suite lists under ``engines``.

    Attributes:
        engine: name in the engine registry.
        options: the adapter's own options, already validated by it.
        args: verbatim command line arguments, appended to the adapter's.
        env: environment variables of the engine's process, beside the inherited ones.
        expect: what must be in effect once it runs, by the engine's own names; values as text.
        variant_of: the arm whose case ids and baselines this one is judged by, or None.
        default: False for arms that run only when named.
        only: names of the workloads that it runs under, () for all.
    """

    name: str
    engine: str
    model: Model
    options: Mapping[str, Any] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    expect: Mapping[str, str] = field(default_factory=dict)
    launcher: str = "local"
    variant_of: str | None = None
    default: bool = True
    start_timeout_s: float = 600.0
    only: tuple[str, ...] = ()

    @property
    def judged_as(self) -> str:
        """The arm name in case ids and baselines."""
        return self.variant_of or self.name

    def runs(self, workload: str) -> bool:
        """Whether the suite runs this arm under a workload."""
        return not self.only or workload in self.only


Kind = Literal["token-ids", "words", "shared-prefix", "custom", "random", "sharegpt"]
Keep = Literal["errors", "all"]
Rules = Literal["vllm-0.11.0", "vllm-0.32.0"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """A distribution of lengths between ``min`` and ``max``, both included.

    Uniform without ``mean`` and ``stdev``; with them, a normal distribution of which only that part is used.
    """

    min: int
    max: int
    mean: float | None = None
    stdev: float | None = None

    def __str__(self) -> str:
        if self.mean is None:
            return f"{self.min} to {self.max}"
        return f"{self.mean:g} ± {self.stdev:g}, {self.min} to {self.max}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A file that requests are made from.

    Attributes:
        path: where it is here; it may differ from machine to machine and is no part of what is asked.
        sha256: of its content, 64 hex digits; None while nobody has said or looked.
    """

    path: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is asked of the engine: how many requests, how long, made how.

    Attributes:
        kind: how prompts are made. ``token-ids``: random tokens, of exact length. ``words``: random words.
            ``shared-prefix``: random tokens, in groups with a common beginning. ``custom``: the prompts of a file.
            ``random`` and ``sharegpt``: as ``vllm bench serve`` makes them.
        input_tokens: length of prompts; None where a file has them.
        output_tokens: tokens asked for; None where a file says it for each prompt.
        output: ``exact`` (a request that ends short is failed) or ``natural`` (it may end by itself).
        vocab: number of token ids to draw from; None where the model's files say it.
        prefix_tokens: of ``shared-prefix`` and ``random``, the part of each prompt that others have too.
        groups: of ``shared-prefix``, how many different prefixes; None for one.
        range_ratio: of ``random``, lengths are drawn from this share around the given ones.
        rules: of ``random`` and ``sharegpt``, the version of vLLM whose way of making prompts is followed.
        data: of ``custom`` and ``sharegpt``, the file.
        oversample: whether a file that is too short may repeat its prompts.
        turns: of ``words`` in a chat, how many requests after another are one conversation; None for one.
        expect_prefix_hits: share of prompt tokens that the engine's prefix cache may answer; None for next to none.
    """

    name: str
    kind: Kind
    requests: int
    input_tokens: int | Lengths | None = None
    output_tokens: int | Lengths | None = None
    output: Literal["exact", "natural"] = "exact"
    api: Literal["completions", "chat"] = "completions"
    temperature: float = 0.0
    vocab: int | None = None
    prefix_tokens: int | None = None
    groups: int | None = None
    range_ratio: float | None = None
    rules: Rules | None = None
    data: DataFile | None = None
    oversample: bool = False
    turns: int | None = None
    expect_prefix_hits: tuple[float, float] | None = None

    def __str__(self) -> str:
        lengths = {"in": self.input_tokens, "out": self.output_tokens}
        known = [f"{length} {way}" for way, length in lengths.items() if length is not None]
        return f"{self.kind}: " + ", ".join([f"{self.requests} requests", *known])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """A rate that goes from ``start`` to ``end`` requests per second over the requests of a run."""

    start: float
    end: float
    shape: Literal["linear", "exponential"] = "linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Recorded arrivals, replayed ``speed`` times as fast."""

    data: DataFile
    speed: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """When requests are sent.

    Attributes:
        kind: ``concurrency``: a closed loop, the next request starts when one ends. ``request_rate``, ``ramp``,
            ``trace``: an open loop, each request at its own time. ``burst``: everything at once.
        value: of ``concurrency``, how many requests are in flight; of ``request_rate``, requests per second.
        burstiness: shape of the gaps of ``request_rate`` and ``ramp``, vLLM's: below 1 they come in bursts, above they
            are more even, ``constant`` is infinity; None for 1, a Poisson process.
        name: part of the case id when it is not None.
    """

    kind: Literal["concurrency", "request_rate", "burst", "ramp", "trace"]
    value: float | None = None
    burstiness: float | Literal["constant"] | None = None
    ramp: Ramp | None = None
    trace: Trace | None = None
    name: str | None = None

    @property
    def scheduled(self) -> bool:
        """Whether each request has a time of its own, for which it can be late."""
        return self.kind in {"request_rate", "ramp", "trace"}

    def __str__(self) -> str:
        text = self.kind if self.value is None else f"{self.kind} {self.value:g}"
        if self.ramp is not None:
            text = f"{self.ramp.shape} ramp {self.ramp.start:g} to {self.ramp.end:g}"
        if self.trace is not None and self.trace.speed != 1:
            text += f" x {self.trace.speed:g}"
        return text if self.burstiness is None else f"{text}, burstiness {self.burstiness}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmup:
    """Load before the measured window: runs of ``requests`` each until none is faster, for at most ``at_most_s``."""

    requests: int = 8
    at_most_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a suite needs: ``gpu`` is a part of the GPU's name (None: any machine), ``count`` how many."""

    gpu: str | None = None
    count: int = 0

    def means(self, name: str) -> bool:
        """Whether a GPU of this name is one of those that it asks for; any is, where it asks for none."""
        return (self.gpu or "").lower() in name.lower()


TELEMETRY_INTERVAL_S = 0.5
"""Of the looks at GPUs: two a second have convicted every throttled machine that was reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One suite file.

    Attributes:
        workloads: by name, after ``matrix`` is multiplied out.
        slo: the limits of goodput, None where there are none.
        loads: what each workload runs under, by workload name.
        unset: by arm, the variables that it needs and that are not set here: it may not run, and is not whole.
        overrides: those given on the command line that applied here, KEY -> VALUE as text.
        failures: how many requests may fail; None where a single one fails the case.
        quarantine: the cases whose red does not count for a while.
        budget_s: wall time that the suite may take in one session, None without a bound.
        keep_raw: whose raw responses are kept: of the first failed requests, or of all. It changes nothing of what is
            asked, and no digest.
        telemetry_interval_s: how often each GPU is looked at while it is measured; None for not at all.
        preconditions: what is expected of the machine, by name of the check; of others the class of hardware says it.
        strict: whether a required check that cannot be read is a failure.
    """

    name: str
    why: str
    file: Path
    arms: Mapping[str, Arm]
    workloads: Mapping[str, Workload]
    gates: tuple[Gate, ...]
    hardware: Hardware
    warmup: Warmup
    stall_timeout_s: float
    request_timeout_s: float
    slo: Slo | None = None
    loads: Mapping[str, tuple[Load, ...]] = field(default_factory=dict)
    unset: Mapping[str, tuple[Mistake, ...]] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)
    failures: FailureGate | None = None
    quarantine: tuple[Quarantine, ...] = ()
    budget_s: float | None = None
    keep_raw: Keep = "errors"
    telemetry_interval_s: float | None = TELEMETRY_INTERVAL_S
    preconditions: Mapping[str, Expectation] = field(default_factory=dict)
    strict: bool = False
