"""Loads: the ones that workloads bring along, and the ones that a suite has for those that bring none."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from pytest_llmperf.model.suite import DataFile, Load, Ramp, Trace
from pytest_llmperf.suitefile.document import KeyPath, dotted
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.keys import LoadKeys, MatrixKeys, RampKeys, SuiteKeys, TraceKeys
from pytest_llmperf.suitefile.vocabulary import keys_of

LOAD_KEYS = keys_of(LoadKeys)
_KINDS = LOAD_KEYS - {"burstiness"}
_WAYS = "one of concurrency: N, request_rate: R, burst: true, ramp: {...} and trace: {...}"


@dataclass(frozen=True)
class SharedLoads:
    """The loads of workloads without one, and which key of the suite says so (None: no key does)."""

    loads: tuple[Load, ...]
    source: KeyPath | None

    @property
    def named(self) -> bool:
        """Whether they multiply the cases."""
        return self.source is not None and self.source != ("load",)


def shared_loads(draft: Draft, keys: SuiteKeys) -> SharedLoads:
    """What ``load``, ``loads`` or ``matrix`` say; only one of them may."""
    choices: list[tuple[KeyPath, tuple[Load, ...]]] = []
    if keys.load is not None:
        choices.append((("load",), _at_most_one(own_load(draft, ("load",), keys.load, needed=True))))
    if keys.loads is not None:
        if not keys.loads and not draft.is_wrong(("loads",)):
            draft.report(("loads",), "must hold at least one load, such as c4: {concurrency: 4}")
        named = (own_load(draft, ("loads", name), entry, name, needed=True) for name, entry in keys.loads.items())
        choices.append((("loads",), tuple(load for load in named if load is not None)))
    if keys.matrix is not None:
        choices += _matrix_loads(keys.matrix)
    if not choices:
        return SharedLoads((), None)
    for path, _ in choices[1:]:
        draft.report(path, f"the load is already set by {dotted(choices[0][0])}; remove one of the two")
    source, loads = choices[0]
    return SharedLoads(loads, source)


def own_load(
    draft: Draft, path: KeyPath, keys: LoadKeys, name: str | None = None, *, needed: bool = False
) -> Load | None:
    """The load that one mapping writes, or None when it writes none; ``needed`` makes that a mistake."""
    values = {key: value for key in sorted(_KINDS) if (value := getattr(keys, key)) is not None}
    if keys.burstiness is not None and not {"request_rate", "ramp"} & set(values):
        draft.report((*path, "burstiness"), "goes with request_rate or ramp, beside it")
        return None
    if len(values) > 1:
        draft.report((*path, list(values)[-1]), f"{' and '.join(values)} exclude each other: a load is {_WAYS}")
        return None
    if not values:
        if needed and not draft.is_wrong(path):
            draft.report(path, f"a load needs {_WAYS}")
        return None
    poisson = keys.burstiness == 1
    return _load(*values.popitem(), name, None if poisson else keys.burstiness)


def value_name(value: float) -> str:
    """A value as a part of a name: ``4``, ``0.5``; never an exponent."""
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def _matrix_loads(matrix: MatrixKeys) -> list[tuple[KeyPath, tuple[Load, ...]]]:
    axes = {"concurrency": matrix.concurrency, "request_rate": matrix.request_rate}
    return [
        (("matrix", kind), tuple(_load(kind, value, f"{kind}-{value_name(value)}") for value in values))
        for kind, values in axes.items()
        if values is not None
    ]


def _load(
    kind: str,
    value: float | RampKeys | TraceKeys,
    name: str | None,
    burstiness: float | Literal["constant"] | None = None,
) -> Load:
    match kind, value:
        case "ramp", RampKeys():
            ramp = Ramp(start=float(value.from_), end=float(value.to), shape=value.shape)
            return Load(kind="ramp", ramp=ramp, burstiness=burstiness, name=name)
        case "trace", TraceKeys():
            data = DataFile(path=value.path, sha256=value.sha256)
            return Load(kind="trace", trace=Trace(data=data, speed=float(value.speed)), name=name)
        case "request_rate", int() | float():
            # A float even for whole numbers, so that equal loads have equal digests.
            return Load(kind="request_rate", value=float(value), burstiness=burstiness, name=name)
        case "concurrency", int() | float():
            return Load(kind="concurrency", value=float(value), name=name)
        case _:
            return Load(kind="burst", name=name)


def _at_most_one(load: Load | None) -> tuple[Load, ...]:
    return () if load is None else (load,)
