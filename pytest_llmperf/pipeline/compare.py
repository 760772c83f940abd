"""Saved runs against saved runs: the same judge, without an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_llmperf import judge, suitefile
from pytest_llmperf.checks import comparability
from pytest_llmperf.errors import UsageError, shown
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.suite import Suite
from pytest_llmperf.pipeline.saved_cases import SavedCase
from pytest_llmperf.registry import did_you_mean

JUDGED = ("output_throughput", "mean_ttft_ms", "mean_tpot_ms", "mean_e2el_ms", "acceptance_length")
"""What is judged where nobody says, as far as both sides have it."""


GatesOf = Callable[[SavedCase], Sequence[Gate]]
"""What a case is judged by; () for ``JUDGED``, with the margins of the metric table."""


def compare(
    reference: Sequence[SavedCase], candidate: Sequence[SavedCase], gates_of: GatesOf = lambda _: ()
) -> list[CaseResult]:
    """A verdict per gate for every case that both sides have.

    One case on each side is compared whatever the two are called; several need the same id, and the same arm where an
    id has several. Runs are judged as against a stored baseline, whose sessions are those of the reference.

    Args:
        reference: by ``saved_cases.by_case``.
        candidate: likewise; its cases say what they are judged by.
        gates_of: see there.

    Raises:
        UsageError: no case is on both sides.
    """
    pairs = _pairs(reference, candidate)
    return [_compared(there, here, gates_of(here), family=len(pairs)) for there, here in pairs]


def gates_of_suite(suite: Suite, cases: Iterable[SavedCase]) -> GatesOf:
    """The gates of a suite, for saved cases of its name.

    A margin against an arm of the same session is judged against the reference; a promise between arms (``at_least``)
    says nothing of two builds of one arm, and is left out. ``margin: auto`` is the metric's own here.

    Raises:
        UsageError: none of ``cases`` is of the suite.
    """
    if all(case.suite != suite.name for case in cases):
        known = ", ".join(dict.fromkeys(case.suite for case in cases))
        raise UsageError(f"--suite {shown(suite.file)}: no saved case is of {suite.name!r}; there is {known}")
    own = {
        (case.id, case.arm.name): [replace(gate, reference=None) for gate in case.gates if gate.at_least is None]
        for arm in suite.arms
        for case in suitefile.expand(suite, engines=[arm])
    }
    return lambda case: own.get((case.case, case.arm), ()) if case.suite == suite.name else ()


def gate_of(text: str) -> Gate:
    """``METRIC`` or ``METRIC=MARGIN``, the margin as a share or in percent, in the unit for absolute metrics.

    Raises:
        UsageError: no such metric, or no margin that it could have.
    """
    name, equals, written = text.partition("=")
    metric = METRICS.get(name)
    if metric is None:
        raise UsageError(f"--gate {text}: unknown metric{did_you_mean(name, METRICS)}")
    if not equals:
        return Gate(metric=metric, margin=metric.margin)
    try:
        margin = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except ValueError:
        margin = 0.0
    percent_of_absolute = metric.scale == "absolute" and written.endswith("%")
    if not 0 < margin < (1 if metric.scale == "ratio" else float("inf")) or percent_of_absolute:
        usual = f"{metric.margin:.0%}" if metric.scale == "ratio" else f"{metric.margin:g}"
        raise UsageError(f"--gate {text}: write a margin such as {name}={usual}")
    return Gate(metric=metric, margin=margin)


def _pairs(reference: Sequence[SavedCase], candidate: Sequence[SavedCase]) -> list[tuple[SavedCase, SavedCase]]:
    if len(reference) == len(candidate) == 1:
        return [(reference[0], candidate[0])]
    pairs = [(there, here) for here in candidate if (there := counterpart(here, reference)) is not None]
    if not pairs:
        before, after = (", ".join(each.case for each in side) or "none" for side in (reference, candidate))
        raise UsageError(f"no case is on both sides; reference: {before}; candidate: {after}")
    return pairs


def counterpart(case: SavedCase, others: Sequence[SavedCase]) -> SavedCase | None:
    """The case of the same id among ``others``; of the same arm where several have it."""
    found = [each for each in others if (each.suite, each.case) == (case.suite, case.case)]
    return found[0] if len(found) == 1 else next((each for each in found if each.arm == case.arm), None)


def _compared(there: SavedCase, here: SavedCase, gates: Sequence[Gate], *, family: int) -> CaseResult:
    before, after = there.measurement(), here.measurement()
    wanted = gates or judged_by_default(before, after)
    result = CaseResult(
        suite=here.suite,
        case=here.case,
        nodeid=here.case if there.case == here.case else f"{here.case} against {there.case}",
        arm=here.arm,
        subject=f"arm {here.arm}" if here.variant else "",
        hardware=here.facts.get("hardware", ""),
        variant=True,  # what is compared here is accepted with `llmperf baseline accept`
        metrics=_means(after, len(here.runs)),
        changed=comparability.changed(there.facts, here.facts),
        environment=here.facts,
        runs=tuple(saved.run.id for saved in here.runs),
    )
    for side, which in ((there, "reference"), (here, "candidate")):
        if not side.runs:
            why = next(iter(side.left_out.values()), "no candidate run was saved")
            return replace(result, skipped=f"nothing to judge: the {which} has no run that may be: {why}")
    if reasons := comparability.refusals(there.facts, here.facts):
        return replace(result, verdicts=tuple(judge.refuse(wanted, f"not comparable: {'; '.join(reasons)}")))
    found = judge.judge(there.measurement(wanted), here.measurement(wanted), wanted, family=family)
    return replace(result, verdicts=tuple(found))


def judged_by_default(*sides: Measurement) -> list[Gate]:
    """``JUDGED`` as far as all sides have it."""
    names = (name for name in JUDGED if all(side.of(name) for side in sides))
    return [Gate(metric=METRICS[name], margin=METRICS[name].margin) for name in names]


def _means(measured: Measurement, runs: int) -> Mapping[str, float]:
    """Of every metric that all runs have."""
    whole = [name for name in METRICS if len(measured.of(name)) == runs > 0]
    return {name: measured.mean(name) for name in whole}
