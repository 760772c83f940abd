"""Saved runs of one build become the calibration of their case's baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from pytest_llmperf import baseline, judge
from pytest_llmperf.checks import comparability
from pytest_llmperf.errors import BaselineError
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.calibration import Calibration
from pytest_llmperf.model.metric import Metric
from pytest_llmperf.pipeline.accept import Change
from pytest_llmperf.pipeline.compare import JUDGED
from pytest_llmperf.pipeline.saved_cases import SavedCase


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration and what was done with it.

    Attributes:
        left_out: run id -> why it is not among the values.
        changes: the files that have it, or would have it; () where it was not to be stored.
    """

    calibration: Calibration
    left_out: Mapping[str, str]
    changes: Sequence[Change] = ()


def calibrate(case: SavedCase, metrics: Collection[Metric] = ()) -> Calibrated:
    """The noise of a case over the valid runs of its newest build.

    Args:
        case: by ``saved_cases.by_case``.
        metrics: those to look at; () for what `llmperf compare` judges, as far as it was measured.

    Raises:
        ValueError: no run, fewer than two sessions, or a metric that not all runs have.
    """
    case = case.of_one_build()
    measured = case.measurement()
    wanted = list(metrics) or [METRICS[name] for name in JUDGED if measured.of(name)]
    valid = case.valid_for([metric.name for metric in wanted])
    if not wanted or not valid.runs:
        raise ValueError("no run that may be judged")
    return Calibrated(judge.calibrate(valid.measurement(), wanted), valid.left_out)


def store(
    case: SavedCase, shelf: baseline.Store, *, on: date, commit: str, metrics: Collection[Metric] = ()
) -> Calibrated:
    """The same, written into the baselines that the case has: counts into those of any hardware, where there are.

    Args:
        case: by ``saved_cases.by_case``.
        shelf: where baselines are.
        on: the day.
        commit: what was measured.
        metrics: those to look at; () for all that the baselines have.

    Raises:
        BaselineError: a variant, no baseline or none of these metrics, or one that is not comparable with the runs.
        ValueError: as ``calibrate``.
    """
    if case.variant:
        raise BaselineError(f"{case.arm} is a variant, whose noise need not be that of {case.case.partition('/')[0]}")
    hardware = case.facts.get("hardware", "unknown")
    stored = shelf.read_case(hardware, case.suite, case.case, any_hardware=True)
    if not stored:
        place = shelf.path(hardware, case.suite, case.case)
        raise BaselineError(f"has no baseline to keep it with ({place}); accept one first: llmperf baseline accept")
    for each in stored:
        if reasons := comparability.refusals(each.facts, case.facts):
            raise BaselineError(f"the runs are not comparable with the baseline: {'; '.join(reasons)}")
    kept = sorted({name for each in stored for name in each.metrics})
    found = calibrate(case, metrics or [METRICS[name] for name in kept])
    files = shelf.calibrated(hardware, case.suite, case.case, replace(found.calibration, on=on, commit=commit))
    if not files:
        raise BaselineError(f"the baseline has none of these metrics; it has {', '.join(kept)}")
    changes = [Change(path, path.read_text(encoding="utf-8"), shelf.text(path, new)) for path, new in files.items()]
    shelf.write_all(files)
    return replace(found, changes=changes)
