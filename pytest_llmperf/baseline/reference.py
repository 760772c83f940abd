"""The baselines of one case as one reference, and one set of accepted values as the files it belongs into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pytest_llmperf.baseline.baseline import Baseline
from pytest_llmperf.checks.comparability import (
    ANY_HARDWARE,
    MACHINE,
    TIMING_ONLY,
    refusals,
    refused_goodput,
    refused_output,
)
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.calibration import Calibration
from pytest_llmperf.model.measurement import Measurement, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a candidate may be compared with.

    Attributes:
        measurement: the metrics of every baseline that is comparable.
        refused: metric -> why its baseline is not; such a metric is NO BASELINE.
        environment: facts of the comparable baselines, for ``checks.comparability.changed``.
        calibrations: metric -> the calibration stored with the baseline that is used for it; without those that have
            none. ``judge.calibrated`` takes one.
    """

    measurement: Measurement
    refused: Mapping[str, str]
    environment: Mapping[str, str]
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)


def reference(baselines: Iterable[Baseline], facts: Mapping[str, str]) -> Reference:
    """The baselines of one case (``Store.read_case``) as one reference for a candidate with these facts.

    Where two files have the same metric, the first one that is comparable is used: the machine's own before ``any``.
    """
    samples: dict[str, tuple[Observation, ...]] = {}
    refused: dict[str, str] = {}
    environment: dict[str, str] = {}
    calibrations: dict[str, Calibration] = {}
    for baseline in baselines:
        reasons = [*refusals(baseline.facts, facts), refused_output(baseline.environment, facts)]
        if reasons := [reason for reason in reasons if reason]:
            why = f"the baseline is not comparable: {'; '.join(reasons)}"
            refused |= {name: why for name in baseline.metrics if name not in refused}
            continue
        goodput = refused_goodput(baseline.environment, facts)
        refused |= {name: f"the baseline is not comparable: {why}" for name, why in goodput.items()}
        own = baseline.measurement().samples
        added = {name: sample for name, sample in own.items() if name not in goodput and name not in samples}
        samples |= added
        if baseline.calibration is not None:
            calibrations |= {
                each.metric: baseline.calibration for each in baseline.calibration.noise if each.metric in added
            }
        environment = {**baseline.environment, **environment}
    usable = {name: why for name, why in refused.items() if name not in samples}
    return Reference(
        measurement=Measurement(samples), refused=usable, environment=environment, calibrations=calibrations
    )


def slug_of(metric: str, machine: str, *, any_hardware: bool) -> str:
    """The hardware slug that a metric's baseline is stored under: ``any`` for counts of a case that runs anywhere."""
    return ANY_HARDWARE if any_hardware and not METRICS[metric].timing else machine


def split(baseline: Baseline, machine: str, *, any_hardware: bool) -> dict[str, Baseline]:
    """Hardware slug -> the part of a baseline that is stored under it.

    All under ``machine``, but for a case that runs on any hardware: there counts, which no machine moves, go under
    ``any``, without the facts of machine and client.
    """
    if not any_hardware:
        return {machine: baseline}

    def part(slug: str) -> Baseline:
        return _only(baseline, lambda name: slug_of(name, machine, any_hardware=True) == slug)

    counts = part(ANY_HARDWARE)
    counts = replace(
        counts,
        refuse_unless={key: value for key, value in counts.refuse_unless.items() if key not in TIMING_ONLY}
        | {"hardware": ANY_HARDWARE},
        machine={},
        environment={key: value for key, value in counts.environment.items() if key not in MACHINE},
    )
    parts = {machine: part(machine), ANY_HARDWARE: counts}
    return {slug: part for slug, part in parts.items() if part.metrics}


def _only(baseline: Baseline, wanted: Callable[[str], bool]) -> Baseline:
    metrics = {name: groups for name, groups in baseline.metrics.items() if wanted(name)}
    noise = None if baseline.calibration is None else baseline.calibration.only(metrics)
    return replace(baseline, metrics=metrics, calibration=noise)
