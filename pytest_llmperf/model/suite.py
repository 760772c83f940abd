"""What a suite file says, after defaults, ``extends`` and ``${VAR}`` are resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.slo import Slo


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is asked of the engine: how many requests, how long, made how.

    ``output`` is ``exact`` (a request that ends short is failed) or ``natural`` (it may end by itself).
    """

    name: str
    kind: Literal["words"]
    requests: int
    input_tokens: int
    output_tokens: int
    output: Literal["exact", "natural"] = "exact"
    api: Literal["completions", "chat"] = "completions"
    temperature: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """When requests are sent.

    ``concurrency``: a closed loop, the next request starts when one ends. ``request_rate``: an open loop, Poisson
    arrivals per second. ``burst``: everything at once. ``name`` is part of the case id when it is not None.
    """

    kind: Literal["concurrency", "request_rate", "burst"]
    value: float | None = None
    name: str | None = None

    def __str__(self) -> str:
        return self.kind if self.value is None else f"{self.kind} {self.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Warmup:
    """Load before the measured window: runs of ``requests`` until they get no faster, for ``at_most_s``."""

    requests: int = 8
    at_most_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a suite needs: ``gpu`` is a part of the GPU's name (None: any machine), ``count`` how many."""

    gpu: str | None = None
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One suite file.

    Attributes:
        workloads: by name, after ``matrix`` is multiplied out.
        slo: the limits of goodput, None where there are none.
        loads: what each workload runs under, by workload name.
        overrides: those given on the command line that applied here, KEY -> VALUE as text.
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
    overrides: Mapping[str, str] = field(default_factory=dict)
