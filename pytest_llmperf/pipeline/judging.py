"""The verdicts of one case: against arms of the same session, against the stored baseline, confirmed when red."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_llmperf import baseline, judge
from pytest_llmperf.checks import comparability
from pytest_llmperf.errors import BaselineError, SanityError
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.calibration import Noise
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.published import Beside
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.suite import Arm
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.pipeline.execute import Trial, reasons
from pytest_llmperf.pipeline.measure import CaseMeasurement, measurement
from pytest_llmperf.pipeline.recording import record
from pytest_llmperf.pipeline.shelf import Shelf
from pytest_llmperf.pipeline.speculation import Account, account

NO_TIME = "the suite's budget leaves no time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a case comes to.

    Attributes:
        verdicts: in the order of the case's gates.
        failures: of the requests, where the suite lets some of them fail.
        account: whether speculation pays, where an arm with it was compared with one without.
        beside: published figures beside what was measured.
        changed: which facts differ from the reference.
    """

    verdicts: tuple[Verdict, ...] = ()
    failures: Verdict | None = None
    account: Account = field(default_factory=Account)
    beside: tuple[Beside, ...] = ()
    changed: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def red(self) -> bool:
        """Whether a loss was found that a fresh start has to confirm."""
        return any(verdict.word is Word.REGRESSED for verdict in self.verdicts)


def judge_case(work: CaseMeasurement, shelf: Shelf, prepared: CaseResult) -> Judged:
    """Measure what the gates need and judge it; what is REGRESSED is not confirmed yet.

    Raises:
        EngineError: the engine died, hung, sent wrong answers, or failed more requests than it may.
    """
    case = work.case
    verdicts = _within_session(work, shelf.family)
    environment: Mapping[str, str] = {}
    stored = [gate for gate in case.gates if gate.reference is None]
    if stored:
        found, environment = _stored(work, stored, shelf, prepared)
        verdicts |= found
    changed = {
        **{key: values for arm in case.references for key, values in _changed(work, arm).items()},
        **comparability.changed(environment, work.facts()),
    }
    return Judged(
        verdicts=tuple(verdicts[gate] for gate in case.gates),
        failures=_failures(work, shelf.family),
        account=account(work),
        beside=_beside(work, shelf),
        changed=changed,
    )


def _beside(work: CaseMeasurement, shelf: Shelf) -> tuple[Beside, ...]:
    """Published figures of the case; none where their file is broken, which ``llmperf baseline audit`` tells."""
    try:
        figures = shelf.published(work.case)
    except BaselineError:
        return ()
    here, today = measurement(work.of("candidate")), work.clock.utc_now().date()
    found = (judge.beside(figure, METRICS[figure.metric], here, today) for figure in figures)
    return tuple(each for each in found if each is not None)


def unconfirmed(judged: Judged, why: str) -> Judged:
    """The same, its reds marked as seen by one start alone."""
    return replace(judged, verdicts=tuple(judge.unconfirmed(verdict, why) for verdict in judged.verdicts))


def confirmed(work: CaseMeasurement, judged: Judged, *, family: int) -> Judged:
    """Measure once more, the candidate on a fresh start; only the reds that are seen again stay red.

    Raises:
        EngineError: the engine died, hung or sent wrong answers.
    """
    gates = work.case.gates
    red = {gate.reference for gate, each in zip(gates, judged.verdicts, strict=True) if each.word is Word.REGRESSED}
    before, after = work.pair([arm for arm in work.case.references if arm.name in red])
    verdicts = (
        _confirm(verdict, gate, before.get(gate.reference or ""), after)
        for gate, verdict in zip(gates, judged.verdicts, strict=True)
    )
    return replace(judged, verdicts=tuple(verdicts), failures=_failures(work, family))


def _changed(work: CaseMeasurement, arm: Arm) -> Mapping[str, tuple[str, str]]:
    return comparability.changed(work.facts("reference", arm.name), work.facts())


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


def _within_session(work: CaseMeasurement, family: int) -> dict[Gate, Verdict]:
    """The verdicts of the gates that compare with an arm."""
    gates = [gate for gate in work.case.gates if gate.reference is not None]
    if work.case.apart:
        return _apart(work, gates, family)
    if gates:
        work.interleave(judge.TURNS[0].runs)
        _failures(work, family)
    verdicts: dict[Gate, Verdict] = {}
    for arm in sorted({gate.reference or "" for gate in gates}):
        own = [gate for gate in gates if gate.reference == arm]
        if why := comparability.refused_output(work.facts("reference", arm), work.facts()):
            found = judge.refuse(own, f"{arm} is not comparable: {why}")
        else:
            found = judge.judge(measurement(work.of("reference", arm)), measurement(work.of("candidate")), own)
        verdicts |= zip(own, found, strict=True)
    return verdicts


def _apart(work: CaseMeasurement, gates: Sequence[Gate], family: int) -> dict[Gate, Verdict]:
    """An A/B: turns until every gate is decided, or there were as many as the last look wants."""
    found: list[Verdict] = []
    for look in judge.TURNS:
        if found and not work.affords(2 * (look.runs - len(work.of("candidate"))), fresh=True):
            found = [judge.cut_short(verdict, NO_TIME) for verdict in found]
            break
        work.interleave(look.runs)
        _failures(work, family)
        found = judge.alternating(measurement(work.of("reference")), measurement(work.of("candidate")), gates)
        if not judge.open_turns(found):
            break
    return dict(zip(gates, found, strict=True))


def _stored(
    work: CaseMeasurement, gates: Sequence[Gate], shelf: Shelf, prepared: CaseResult
) -> tuple[dict[Gate, Verdict], Mapping[str, str]]:
    """The verdicts of the gates on a stored baseline, or of its recording; and the facts that it was measured under."""
    case = work.case
    try:
        recorded = [gate for gate in gates if shelf.records(case, gate)]
        judged = [gate for gate in gates if gate not in recorded]
        baselines = shelf.read(case) if judged else []
        verdicts = record(work, recorded, shelf, prepared) if recorded else []
    except BaselineError as error:
        return dict(zip(gates, judge.refuse(gates, str(error)), strict=True)), {}
    written = dict(zip(recorded, verdicts, strict=True))
    if not judged:
        return written, {}
    found, reference = _looks(work, judged, baselines, shelf)
    explained = (_explain(verdict, gate, case, shelf, reference) for verdict, gate in zip(found, judged, strict=True))
    return written | dict(zip(judged, explained, strict=True)), reference.environment


def _looks(
    work: CaseMeasurement, gates: Sequence[Gate], baselines: Sequence[baseline.Baseline], shelf: Shelf
) -> tuple[list[Verdict], baseline.Reference]:
    """Runs until every gate is decided, within the suite's budget."""
    found: list[Verdict] = []
    recent: Measurement | None = None
    looks = judge.from_now(judge.LOOKS, len(work.of("candidate")))
    for look in looks:
        if found and not work.affords(look.runs - len(work.of("candidate"))):
            found = [judge.cut_short(verdict, NO_TIME) for verdict in found]
            break
        work.run_candidate(look.runs)
        _failures(work, shelf.family)
        reference = baseline.reference(baselines, work.facts())
        if not found:
            sessions = {trial.run.session for trial in work.trials}
            now = work.clock.utc_now()
            recent = shelf.recent(work.case, gates, baselines, facts=work.facts(), without=sessions, now=now)
        candidate = measurement(work.of("candidate"))
        found = judge.sequential(
            reference.measurement, candidate, gates, recent=recent, looks=looks, family=shelf.family
        )
        gated = [each for each, gate in zip(found, gates, strict=True) if _too_noisy(gate, reference) is None]
        if not judge.undecided(gated):
            break
    return found, reference


def _too_noisy(gate: Gate, reference: baseline.Reference) -> Noise | None:
    """The noise of a gate that is ``auto`` still, though it was calibrated: no margin could be seen through it."""
    calibration = reference.calibrations.get(gate.metric.name)
    return calibration.of(gate.metric.name) if gate.auto and calibration is not None else None


def _explain(verdict: Verdict, gate: Gate, case: Case, shelf: Shelf, reference: baseline.Reference) -> Verdict:
    """NO BASELINE with its reason: not comparable, no such metric in the file, or no file; else what noise is known."""
    if verdict.word is not Word.NO_BASELINE:
        known = replace(verdict, calibrated=None if gate.cv == 0 else verdict.metric in reference.calibrations)
        noise = _too_noisy(gate, reference)
        return known if noise is None else judge.ungated(known, gate, noise)
    place = shelf.store.shown(shelf.place(case, gate))
    if why := reference.refused.get(verdict.metric):
        return replace(verdict, cause=f"{why} ({place})")
    return verdict if shelf.place(case, gate).exists() else replace(verdict, cause=f"there is no file {place}")


def _failures(work: CaseMeasurement, family: int) -> Verdict | None:
    """How the share of failed requests compares with what the suite lets fail; None where it lets none.

    Raises:
        SanityError: more of an arm's requests failed.
    """
    gate = work.case.suite.failures
    if gate is None or not work.trials:
        return None
    found = {}
    for arm in dict.fromkeys(trial.run.arm for trial in work.trials):
        runs = [trial.run for trial in work.trials if trial.run.arm == arm]
        failed, requests = sum(int((~run.records.ok).sum()) for run in runs), sum(len(run.records) for run in runs)
        found[arm] = judge.failures(gate, failed, requests, family=family, runs=len(runs))
        if found[arm].word is Word.FAILED:
            raise SanityError(f"{arm}: {found[arm].cause}", evidence="\n".join(reasons([run.records for run in runs])))
    return found.get(work.subject.name)
