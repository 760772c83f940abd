"""Saved runs by case: those that may be judged or accepted, and why the others may not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pytest_llmperf.checks import comparability, validity
from pytest_llmperf.history.fitness import for_all_timings, in_the_future, invalid, is_variant, unfit
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement, OneRun
from pytest_llmperf.model.saved_run import SavedFacts


@dataclass(slots=True)
class SavedCase:
    """The candidate runs of one case on one arm, in order of time.

    Attributes:
        arm: what was measured.
        runs: that may be judged: whole, without a loss made on purpose, and alike in all that a comparison refuses.
        left_out: run id -> why it is none of them.
    """

    suite: str
    case: str
    arm: str
    runs: list[SavedFacts] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def variant(self) -> bool:
        """Whether the case is named after another arm, as which this one is judged."""
        return is_variant(self.case, self.arm)

    @property
    def facts(self) -> Mapping[str, str]:
        """The environment of the newest run; {} without one."""
        return self.runs[-1].run.environment if self.runs else {}

    @property
    def sessions(self) -> tuple[str, ...]:
        """Server starts, in order of their first run."""
        return tuple(dict.fromkeys(saved.run.session for saved in self.runs))

    def newest(self, sessions: int) -> SavedCase:
        """The same with its newest sessions alone."""
        kept = set(self.sessions[-sessions:])
        return replace(self, runs=[each for each in self.runs if each.run.session in kept])

    def valid_for(self, metrics: Collection[str]) -> SavedCase:
        """The same without the runs of which one of ``metrics`` is invalid."""
        kept, left_out = [], dict(self.left_out)
        for saved in self.runs:
            findings = for_all_timings(saved.run.findings, metrics)
            wrong = [each for each in findings if each.invalidates and not (each.metrics or set()).isdisjoint(metrics)]
            if wrong:
                left_out[saved.run.id] = f"invalid: {'; '.join(map(str, wrong))}"
            else:
                kept.append(saved)
        return replace(self, runs=kept, left_out=left_out)

    def of_one_build(self) -> SavedCase:
        """The same without the runs of another build than that of the newest one."""
        why = {saved.run.id: comparability.other_build(self.facts, saved.run.environment) for saved in self.runs}
        left_out = {
            run: f"another build than the newest run: {'; '.join(reasons)}" for run, reasons in why.items() if reasons
        }
        kept = [saved for saved in self.runs if saved.run.id not in left_out]
        return replace(self, runs=kept, left_out={**self.left_out, **left_out})

    def measurement(self, gates: Sequence[Gate] = ()) -> Measurement:
        """One value per metric and run; ``order`` counts through all runs, as each session begins with 0.

        Whether the client could keep up is asked for ``gates`` too: the run's own findings speak of the metrics that
        were gated when it was made.
        """
        return Measurement.of_runs(
            OneRun(saved.run.session, order, saved.values, invalid(_checked_for(gates, saved), saved.values))
            for order, saved in enumerate(self.runs)
        )


def by_case(saved: Iterable[SavedFacts], *, now: datetime) -> list[SavedCase]:
    """The candidate runs by suite, case and arm; warm-up, references and confirmations are no candidates.

    Runs that differ from the newest one in a fact of ``comparability.REFUSE`` are left out: nothing could be compared
    with both. So are those of another ``SUBJECT``, and those that began after ``now``, which would be the newest.
    """
    cases: dict[tuple[str, str, str], SavedCase] = {}
    for each in sorted(saved, key=lambda each: (each.run.began, each.run.order, each.run.id)):
        if each.run.role != "candidate":
            continue
        key = each.run.suite, each.run.case, each.run.arm
        case = cases.setdefault(key, SavedCase(*key))
        if why := in_the_future(each, now) or unfit(each):
            case.left_out[each.run.id] = why
        else:
            case.runs.append(each)
    for case in cases.values():
        refused = [_refused(case.facts, each.run.environment) for each in case.runs]
        for each, reasons in zip(case.runs, refused, strict=True):
            if reasons:
                case.left_out[each.run.id] = f"not comparable with the newest run: {'; '.join(reasons)}"
        case.runs = [each for each, reasons in zip(case.runs, refused, strict=True) if not reasons]
    return list(cases.values())


def _refused(newest: Mapping[str, str], facts: Mapping[str, str]) -> list[str]:
    return [*comparability.refusals(newest, facts), *comparability.other_subject(newest, facts)]


def _checked_for(gates: Sequence[Gate], saved: SavedFacts) -> SavedFacts:
    known = for_all_timings(saved.run.findings, [gate.metric.name for gate in gates])
    checked = (*known, *validity.client_findings(saved.run.client, saved.values, gates))
    return replace(saved, run=replace(saved.run, findings=checked))
