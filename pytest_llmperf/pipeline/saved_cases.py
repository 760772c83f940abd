"""Saved runs by case: those that may be judged or accepted, and why the others may not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pytest_llmperf.checks import comparability
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.saved_run import SavedRun
from pytest_llmperf.pipeline.execute import Trial
from pytest_llmperf.pipeline.measure import measurement


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
    runs: list[SavedRun] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def variant(self) -> bool:
        """Whether the case is named after another arm, as which this one is judged."""
        return self.case.partition("/")[0] != self.arm

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

    def measurement(self) -> Measurement:
        """One value per metric and run; ``order`` counts through all runs, as each session begins with 0."""
        trials = [Trial(saved.run, saved.values) for saved in self.runs]
        return measurement(trials, orders=range(len(trials)))


def by_case(saved: Iterable[SavedRun]) -> list[SavedCase]:
    """The candidate runs by suite, case and arm; warm-up, references and confirmations are no candidates.

    Runs that differ from the newest one in a fact of ``comparability.REFUSE`` are left out: nothing could be compared
    with both.
    """
    cases: dict[tuple[str, str, str], SavedCase] = {}
    for each in sorted(saved, key=lambda each: (each.run.started, each.run.order)):
        if each.run.role != "candidate":
            continue
        key = each.run.suite, each.run.case, each.run.arm
        case = cases.setdefault(key, SavedCase(*key))
        if why := _unfit(each):
            case.left_out[each.run.id] = why
        else:
            case.runs.append(each)
    for case in cases.values():
        for each in list(case.runs):
            if reasons := comparability.refusals(case.facts, each.run.environment):
                case.runs.remove(each)
                case.left_out[each.run.id] = f"not comparable with the newest run: {'; '.join(reasons)}"
    return list(cases.values())


def _unfit(saved: SavedRun) -> str:
    """Why a run says nothing of the engine's speed; "" when it does."""
    run = saved.run
    if not run.records.ok.all():
        return f"{int((~run.records.ok).sum())} of {len(run.records)} requests failed"
    if comparability.INJECTED in run.environment:
        return f"a loss was made on purpose: {run.environment[comparability.INJECTED]}"
    whole = [str(finding) for finding in run.findings if finding.invalidates and finding.metrics is None]
    return f"invalid: {'; '.join(whole)}" if whole else ""
