"""Loading: from the text of a file to a suite, or to the list of everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pytest_llmperf.errors import Mistake, SuiteError, shown
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.slo import Slo
from pytest_llmperf.model.suite import TELEMETRY_INTERVAL_S, Hardware, Suite, Warmup
from pytest_llmperf.suitefile.arms import Arms, resolve_arms
from pytest_llmperf.suitefile.document import parse
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.expansion import ungated
from pytest_llmperf.suitefile.gates import resolve_gates
from pytest_llmperf.suitefile.keys import FailureKeys, SloKeys, SuiteKeys, TelemetryKeys
from pytest_llmperf.suitefile.kinds import report_without_files
from pytest_llmperf.suitefile.override import apply_overrides
from pytest_llmperf.suitefile.quarantines import resolve_quarantine
from pytest_llmperf.suitefile.relations import resolve_relations
from pytest_llmperf.suitefile.structure import validate
from pytest_llmperf.suitefile.values import NAME
from pytest_llmperf.suitefile.variable import substitute
from pytest_llmperf.suitefile.workloads import Workloads, resolve_workloads

STALL_TIMEOUT_S = 300.0
REQUEST_TIMEOUT_S = 1800.0
"""Half an hour: many times the longest end-to-end latency of a published benchmark at full burst (about 100 s on
average), and still within the usual bound of a CI job."""
MOST_FAILED = 0.5
"""Of the limit of failed requests: an engine that loses more than every other one serves nobody."""

SHORTEST_TELEMETRY_INTERVAL_S = 0.1
"""NVIDIA's own monitor calls what it reads faster invalid on Hopper."""


def load_suite(path: Path, *, overrides: Mapping[str, str], environ: Mapping[str, str]) -> Suite:
    """Read and check one suite file.

    Args:
        path: a ``*.llmperf.yaml`` file.
        overrides: dotted KEY -> VALUE as given to ``--llmperf-set``. A KEY that means nothing in this suite is left
            alone: ``Suite.overrides`` tells which ones applied, ``check_overrides`` complains of those that never did.
        environ: values for ``${VAR}``.

    Raises:
        SuiteError: with all mistakes of the file. A variable that is not set here, and that an arm needs, is none as
            long as the arm does not run: ``expand`` complains of it.
    """
    file = shown(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SuiteError([Mistake(file, 1, "", f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise SuiteError([Mistake(file, line, "", "not UTF-8 text; save the file as UTF-8")]) from None
    draft = Draft(parse(text, file))
    apply_overrides(draft, overrides)
    substitute(draft, environ)
    keys = validate(draft)
    _check_names(draft, keys)
    workloads = resolve_workloads(draft, keys)
    arms = resolve_arms(draft, keys, workloads)
    gates = resolve_gates(draft, keys, workloads)
    relations = resolve_relations(draft, keys, workloads, arms.arms, gates)
    suite = _suite(path, draft, keys, workloads, arms, (*gates, *relations))
    quarantine = resolve_quarantine(draft, keys, suite)
    _check_gated(draft, suite)
    _check_models(draft, suite, workloads)
    named = {name for name, arm in (keys.engines or {}).items() if arm.default is False}
    draft.finish(also=(each for name, unset in arms.unset.items() if name not in named for each in unset))
    return replace(suite, quarantine=quarantine)


def _suite(
    path: Path, draft: Draft, keys: SuiteKeys, workloads: Workloads, arms: Arms, gates: tuple[Gate, ...]
) -> Suite:
    hardware, warmup = keys.hardware, keys.warmup
    return Suite(
        name=keys.suite or "",
        why=keys.why or "",
        file=path,
        arms=arms.arms,
        unset=arms.unset,
        workloads=workloads.workloads,
        loads=workloads.loads,
        gates=gates,
        hardware=Hardware() if hardware is None else Hardware(gpu=hardware.gpu, count=hardware.count or 1),
        warmup=Warmup() if warmup is None else _warmup(warmup.requests, warmup.at_most),
        stall_timeout_s=keys.stall_timeout or STALL_TIMEOUT_S,
        request_timeout_s=keys.request_timeout or REQUEST_TIMEOUT_S,
        slo=_slo(draft, keys.slo),
        overrides=draft.overrides,
        failures=_failures(draft, keys.failed_requests),
        budget_s=keys.budget,
        keep_raw=keys.keep_raw or "errors",
        telemetry_interval_s=_telemetry(draft, keys.telemetry),
        preconditions=_preconditions(draft, keys),
        strict=keys.preconditions is not None and keys.preconditions.strict is True,
    )


def _preconditions(draft: Draft, keys: SuiteKeys) -> Mapping[str, Expectation]:
    if keys.preconditions is None:
        return {}
    from pytest_llmperf.suitefile.preconditions import resolve_preconditions  # noqa: PLC0415 (takes a moment)

    return resolve_preconditions(draft, keys.preconditions)


def _warmup(requests: int | None, at_most_s: float | None) -> Warmup:
    default = Warmup()
    return Warmup(requests=requests or default.requests, at_most_s=at_most_s or default.at_most_s)


def _telemetry(draft: Draft, keys: TelemetryKeys | None) -> float | None:
    """The interval, None for none. Below the floor the looks themselves would move what is measured."""
    if keys is None:
        return TELEMETRY_INTERVAL_S
    if keys.off:
        return None
    if keys.interval is None:
        return TELEMETRY_INTERVAL_S
    if keys.interval < SHORTEST_TELEMETRY_INTERVAL_S:
        draft.report(("telemetry", "interval"), "must be at least 100ms: looks that come faster move what is measured")
    return keys.interval


def _slo(draft: Draft, keys: SloKeys | None) -> Slo | None:
    if keys is None:
        return None
    if not keys.model_fields_set and not draft.is_wrong(("slo",)):
        draft.report(("slo",), "must hold at least one limit, such as slo: {ttft: 500ms, tpot: 50ms}")
    return Slo(ttft_s=keys.ttft, tpot_s=keys.tpot, e2el_s=keys.e2el)


def _failures(draft: Draft, keys: FailureKeys | None) -> FailureGate | None:
    if keys is None:
        return None
    default, path = FailureGate(), ("failed_requests",)
    allowed = default.allowed if keys.allowed is None else keys.allowed
    limit = default.limit if keys.limit is None else keys.limit
    if limit > MOST_FAILED:
        draft.report((*path, "limit"), f"{100 * limit:.12g}% must be at most {MOST_FAILED:.0%}: an engine that "
                     "loses more than every other request is not in order; the default is 1%")  # fmt: skip
        return None
    try:
        return FailureGate(allowed=allowed, limit=limit)
    except ValueError as error:
        if not draft.is_wrong(path):  # else a default stands for what is wrong
            draft.report(path, str(error))
        return None


def _check_names(draft: Draft, keys: SuiteKeys) -> None:
    if keys.suite is None and not draft.is_excused(("suite",)):
        draft.report((), "a suite needs a name, such as suite: chat")
    if keys.hardware is not None and keys.hardware.gpu is None and not draft.is_excused(("hardware", "gpu")):
        draft.report(("hardware",), "needs 'gpu', a part of the GPU's name such as H200")
    named = [(("engines", name), name) for name in keys.engines or ()]
    named += [(("workloads", name), name) for name in keys.workloads or ()]
    named += [(("loads", name), name) for name in keys.loads or ()]
    for path, name in [(("suite",), keys.suite or "x"), *named]:
        if not re.fullmatch(NAME, name):
            draft.report(path, f"{name!r} is no name: use letters, digits, '.', '_' and '-', and start with a letter "
                         "or a digit")  # fmt: skip


def _check_gated(draft: Draft, suite: Suite) -> None:
    """Every case needs a gate, but those of an arm that is there for others to be compared with.

    Not asked while the gates themselves are in doubt.
    """
    if not suite.gates or draft.is_wrong(("gates",)) or draft.is_wrong(("relations",)):
        return
    references = {gate.reference for gate in suite.gates}
    for arm in suite.arms.values():
        cases = [] if arm.name in references and not arm.default else ungated(suite, arm)
        if cases:
            more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
            draft.report(("engines", arm.name), f"no gate judges case {cases[0]!r}{more}; "
                         "widen a gate's only, or leave the workload out by the arm's only")  # fmt: skip


def _check_models(draft: Draft, suite: Suite, workloads: Workloads) -> None:
    """Kinds that need files of the model, under arms whose model has none."""
    for arm in suite.arms.values():
        if arm.model.path is None and arm.name not in suite.unset:
            for name, members in workloads.families.items():
                if name in draft.names("workloads") and members and arm.runs(members[0]):
                    report_without_files(draft, arm.name, suite.workloads[members[0]], name)
