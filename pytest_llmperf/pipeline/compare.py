"""Saved runs against saved runs: the same judge, without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_llmperf import judge
from pytest_llmperf.checks import comparability
from pytest_llmperf.errors import UsageError
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.pipeline.saved_cases import SavedCase
from pytest_llmperf.registry import did_you_mean

JUDGED = ("output_throughput", "mean_ttft_ms", "mean_tpot_ms", "mean_e2el_ms", "acceptance_length")
"""What is judged where nobody says, as far as both sides have it."""


def compare(
    reference: Sequence[SavedCase], candidate: Sequence[SavedCase], gates: Sequence[Gate] = ()
) -> list[CaseResult]:
    """A verdict per gate for every case that both sides have.

    One case on each side is compared whatever the two are called; several need the same id, and the same arm where an
    id has several. Runs are judged as against a stored baseline, whose sessions are those of the reference.

    Args:
        reference: by ``saved_cases.by_case``.
        candidate: likewise.
        gates: () for ``JUDGED``, with the margins of the metric table.

    Raises:
        UsageError: no case is on both sides.
    """
    pairs = _pairs(reference, candidate)
    return [_compared(there, here, gates, family=len(pairs)) for there, here in pairs]


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
    pairs = [(there, here) for here in candidate if (there := _counterpart(here, reference)) is not None]
    if not pairs:
        before, after = (", ".join(each.case for each in side) or "none" for side in (reference, candidate))
        raise UsageError(f"no case is on both sides; reference: {before}; candidate: {after}")
    return pairs


def _counterpart(case: SavedCase, others: Sequence[SavedCase]) -> SavedCase | None:
    found = [each for each in others if (each.suite, each.case) == (case.suite, case.case)]
    return found[0] if len(found) == 1 else next((each for each in found if each.arm == case.arm), None)


def _compared(there: SavedCase, here: SavedCase, gates: Sequence[Gate], *, family: int) -> CaseResult:
    before, after = there.measurement(), here.measurement()
    wanted = gates or [
        Gate(metric=METRICS[name], margin=METRICS[name].margin) for name in JUDGED if before.of(name) and after.of(name)
    ]
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


def _means(measured: Measurement, runs: int) -> Mapping[str, float]:
    """Of every metric that all runs have."""
    whole = [name for name in METRICS if len(measured.of(name)) == runs > 0]
    return {name: measured.mean(name) for name in whole}
