"""The verdicts of one case: against arms of the same session, against the stored baseline, confirmed when red."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_llmperf import baseline, judge
from pytest_llmperf.checks import comparability
from pytest_llmperf.clock import Clock
from pytest_llmperf.errors import BaselineError, UsageError, shown
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.suite import Arm
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.pipeline.commit import commit_at
from pytest_llmperf.pipeline.execute import Trial
from pytest_llmperf.pipeline.measure import CaseMeasurement, measurement

ACCEPTED_RUNS = 3
"""Runs that one accepted session records; more runs of one session hardly sharpen a baseline, more sessions do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Where stored baselines are, and whether this session may write them.

    Attributes:
        family: number of gated cases, over which p-values are adjusted.
    """

    store: baseline.Store
    hardware: str
    accept: baseline.Mode
    why: str
    family: int

    def read(self, case: Case) -> list[baseline.Baseline]:
        """The stored baselines of a case that may serve here."""
        return self.store.read_case(self.hardware, case.suite.name, case.id, any_hardware=_any_hardware(case))

    def place(self, case: Case, gate: Gate) -> Path:
        """The file that has, or would have, the baseline of one gate."""
        return self.store.path(self._slug(case, gate), case.suite.name, case.id)

    def records(self, case: Case, gate: Gate) -> bool:
        """Whether this session writes the baseline of one gate instead of judging by it."""
        if self.accept != "missing":
            return self.accept == "all"  # without a look at the old one, which may be broken
        return baseline.may_write(self.accept, self.store.read(self._slug(case, gate), case.suite.name, case.id))

    def _slug(self, case: Case, gate: Gate) -> str:
        return baseline.slug_of(gate.metric.name, self.hardware, any_hardware=_any_hardware(case))


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdicts in the order of the case's gates, and which facts differ from the stored baseline's."""

    verdicts: tuple[Verdict, ...]
    changed: Mapping[str, tuple[str, str]]


def judge_case(case: Case, work: CaseMeasurement, shelf: Shelf, prepared: CaseResult, clock: Clock) -> Judged:
    """Measure what the gates need and judge it; a red is measured again after a fresh start.

    Raises:
        EngineError: the engine died, hung or sent wrong answers.
    """
    gates = case.gates
    verdicts = _within_session(work, gates)
    environment: Mapping[str, str] = {}
    stored = [gate for gate in gates if gate.reference is None]
    if stored:
        found, environment = _stored(case, work, stored, shelf, prepared, clock)
        verdicts |= found
    confirmed = _confirmed(work, gates, [verdicts[gate.metric.name] for gate in gates])
    changed = {
        **{key: values for arm in case.references for key, values in _changed(work, arm).items()},
        **comparability.changed(environment, work.facts()),
    }
    return Judged(tuple(confirmed), changed)


def _changed(work: CaseMeasurement, arm: Arm) -> Mapping[str, tuple[str, str]]:
    return comparability.changed(work.facts("reference", arm.name), work.facts())


def _confirmed(work: CaseMeasurement, gates: Sequence[Gate], verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Measure once more after a fresh start of the candidate; only the reds that are seen again stay red."""
    red = [gate for gate, verdict in zip(gates, verdicts, strict=True) if verdict.word is Word.REGRESSED]
    if not red:
        return list(verdicts)
    if not work.servers.can_restart(work.subject):
        return [judge.unconfirmed(verdict) for verdict in verdicts]
    arms = {gate.reference for gate in red}
    before, after = work.fresh_pair([arm for arm in work.case.references if arm.name in arms])
    return [
        _confirm(verdict, gate, before.get(gate.reference or ""), after)
        for gate, verdict in zip(gates, verdicts, strict=True)
    ]


def _confirm(verdict: Verdict, gate: Gate, before: Trial | None, after: Trial) -> Verdict:
    name = gate.metric.name
    runs = [after] if before is None else [before, after]
    for trial in runs:
        if name in trial.invalid:
            return judge.unconfirmed(verdict, f"the run after a fresh start was invalid: {trial.invalid[name]}")
        if name not in trial.values:
            return judge.unconfirmed(verdict, "the run after a fresh start has no value")
    reference = verdict.reference if before is None else before.values[name]
    return verdict if reference is None else judge.confirm(verdict, gate, reference, after.values[name])


def _within_session(work: CaseMeasurement, gates: Sequence[Gate]) -> dict[str, Verdict]:
    if work.case.apart:
        return _apart(work, gates)
    arms = {gate.reference for gate in gates if gate.reference is not None}
    if arms:
        work.interleave(judge.TURNS[0].runs)
    verdicts: dict[str, Verdict] = {}
    for arm in sorted(arms):
        own = [gate for gate in gates if gate.reference == arm]
        if why := comparability.refused_output(work.facts("reference", arm), work.facts()):
            judged = judge.refuse(own, f"{arm} is not comparable: {why}")
        else:
            judged = judge.judge(measurement(work.of("reference", arm)), measurement(work.of("candidate")), own)
        verdicts |= {verdict.metric: verdict for verdict in judged}
    return verdicts


def _apart(work: CaseMeasurement, gates: Sequence[Gate]) -> dict[str, Verdict]:
    """An A/B: turns until every gate is decided, or there were as many as the last look wants."""
    found: list[Verdict] = []
    for look in judge.TURNS:
        work.interleave(look.runs)
        found = judge.alternating(measurement(work.of("reference")), measurement(work.of("candidate")), gates)
        if not judge.open_turns(found):
            break
    return {verdict.metric: verdict for verdict in found}


def _stored(
    case: Case, work: CaseMeasurement, gates: Sequence[Gate], shelf: Shelf, prepared: CaseResult, clock: Clock
) -> tuple[dict[str, Verdict], Mapping[str, str]]:
    try:
        recorded = [gate for gate in gates if shelf.records(case, gate)]
        judged = [gate for gate in gates if gate not in recorded]
        baselines = shelf.read(case) if judged else []
        verdicts = _record(case, work, recorded, shelf, prepared, clock) if recorded else {}
    except BaselineError as error:
        return {verdict.metric: verdict for verdict in judge.refuse(gates, str(error))}, {}
    if not judged:
        return verdicts, {}
    for look in judge.LOOKS:
        work.run_candidate(look.runs)
        reference = baseline.reference(baselines, work.facts())
        candidate = measurement(work.of("candidate"))
        found = judge.sequential(reference.measurement, candidate, judged, family=shelf.family)
        if not judge.undecided(found):
            break
    explained = (_explain(verdict, gate, case, shelf, reference) for verdict, gate in zip(found, judged, strict=True))
    return verdicts | {verdict.metric: verdict for verdict in explained}, reference.environment


def _explain(verdict: Verdict, gate: Gate, case: Case, shelf: Shelf, reference: baseline.Reference) -> Verdict:
    """NO BASELINE with its reason: not comparable, no such metric in the file, or no file."""
    if verdict.word is not Word.NO_BASELINE:
        return verdict
    place = shown(shelf.place(case, gate))
    if why := reference.refused.get(verdict.metric):
        return replace(verdict, cause=f"{why} ({place})")
    return verdict if shelf.place(case, gate).exists() else replace(verdict, cause=f"there is no file {place}")


def _record(
    case: Case, work: CaseMeasurement, gates: Sequence[Gate], shelf: Shelf, prepared: CaseResult, clock: Clock
) -> dict[str, Verdict]:
    if case.arm.variant_of is not None:
        raise UsageError(
            f"--llmperf-accept: {case.arm.name} is a variant of {case.arm.variant_of}, whose baseline its values would"
            " become; accept without --llmperf-engine"
        )
    work.run_candidate(ACCEPTED_RUNS)
    runs = measurement(work.of("candidate"))
    # One file holds all stored gates of its kind, also those that -m or -k left out: a part would lose the rest.
    places = {shelf.place(case, gate) for gate in gates}
    accepted = baseline.accept(
        replace(prepared, environment=work.facts()),
        runs,
        why=shelf.why,
        on=clock.utc_now().date(),
        commit=commit_at(case.suite.file.parent),
        metrics=[gate.metric.name for gate in work.recorded if shelf.place(case, gate) in places],
    )
    shelf.store.write_case(shelf.hardware, case.suite.name, accepted, any_hardware=_any_hardware(case))
    values = work.mean_values()
    return {
        gate.metric.name: Verdict(
            metric=gate.metric.name,
            word=Word.SKIPPED,
            margin=gate.margin,
            measured=values.get(gate.metric.name),
            runs=len(work.of("candidate")),
            cause=f"baseline recorded in {shown(shelf.place(case, gate))}",
        )
        for gate in gates
    }


def _any_hardware(case: Case) -> bool:
    return case.suite.hardware.gpu is None
