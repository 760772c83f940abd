"""Calibration: runs of one build judged against each other, to learn what a gate can see before it judges anything."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_llmperf.judge import stored, words
from pytest_llmperf.judge.looks import LOOKS
from pytest_llmperf.judge.samples import Sample, read, runs_of
from pytest_llmperf.judge.verdicts import sequential
from pytest_llmperf.model.calibration import MARGINS, Calibration, Noise
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.metric import Metric
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.stats import variance
from pytest_llmperf.stats.series import autocorrelation, correlation
from pytest_llmperf.stats.variance import mean

MARGIN_RUNS = 3
"""A margin must be visible at the look with so many runs: the second, so that the last is left for bad luck."""
SHARE_TAIL = LIMIT_TAIL = 0.05


def calibrate(runs: Measurement, metrics: Sequence[Metric]) -> Calibration:
    """The noise of ``metrics`` over runs of one build, grouped by session.

    From ten sessions on, the noise that was found takes the place of the class prior in what is said to be visible, as
    ``calibrated`` puts it into a gate. False alarms are counted on every split there is: each session once as
    candidate, all others as its baseline, all looks, the suggested margins, no fresh start. Nothing is drawn at random.

    Raises:
        ValueError: a metric without a usable value in every run, or fewer than two sessions.
    """
    samples = {metric.name: _sample(runs, metric) for metric in metrics}
    gates, found = [], []
    for metric in metrics:
        sample = samples[metric.name]
        gate = _own_noise(Gate(metric=metric, margin=metric.margin), _limit(sample), len(sample.groups))
        noise = _noise(gate, sample)
        gates.append(gate if noise.margin is None else replace(gate, margin=noise.margin))
        found.append(noise)
    replays = _replays(runs, gates)
    red = [[verdict.word is Word.REGRESSED for verdict in verdicts] for verdicts in replays]
    values = [[gate.sign * value for value in samples[gate.metric.name].values] for gate in gates]
    return Calibration(
        sessions=len({session for _, session in runs_of(runs)}),
        runs=len(runs_of(runs)),
        noise=tuple(replace(each, false_alarms=sum(row[i] for row in red)) for i, each in enumerate(found)),
        correlations=tuple(tuple(correlation(first, second) for second in values) for first in values),
        replays=len(replays),
        red_replays=sum(any(row) for row in red),
    )


def calibrated(gate: Gate, calibration: Calibration | None) -> Gate | None:
    """The gate with what its calibration says of the noise: from ten sessions on the cv, of ``auto`` ones the margin.

    A gate that was not calibrated stays as it is: an ``auto`` one has the metric's own margin. A cv that the gate
    declares stays. None for an ``auto`` gate where no margin on the list could be seen: then nothing can be promised,
    and the metric is shown without being gated.
    """
    noise = None if calibration is None else calibration.of(gate.metric.name)
    if calibration is None or noise is None:
        return gate
    known = _own_noise(gate, noise.cv_limit, calibration.sessions)
    if not gate.auto:
        return known
    return None if noise.margin is None else replace(known, margin=noise.margin)


def ungated(verdict: Verdict, gate: Gate, noise: Noise) -> Verdict:
    """INCONCLUSIVE for an ``auto`` gate of which ``calibrated`` says that nothing can be promised; INVALID stays."""
    if verdict.word is Word.INVALID:
        return verdict
    seen = words.size(gate, dict(noise.visible)[MARGIN_RUNS])
    largest = words.size(gate, MARGINS[-1])
    why = f"not gated: {MARGIN_RUNS} runs see no loss below {seen}, and the largest margin is {largest}"
    return replace(verdict, word=Word.INCONCLUSIVE, cause=why)


def auto_margin(visible: float) -> float | None:
    """The smallest of ``MARGINS`` that is no smaller than what can be seen; None where the largest is."""
    return next((margin for margin in MARGINS if margin >= visible), None)


def visible(gate: Gate, baseline: Measurement, runs: int) -> float | None:
    """The smallest loss that ``runs`` candidate runs of one session would show against a baseline.

    As ``Verdict.smallest_visible`` has it, a share or in the unit, to be read beside ``gate.margin``; None for an exact
    gate and for a baseline that has no usable value.
    """
    sample = read(baseline.of(gate.metric.name), gate, baseline.invalid.get(gate.metric.name, ""))
    if sample.fault or gate.cv == 0:
        return None
    return _visible_after(gate, sample, runs)


def _own_noise(gate: Gate, cv: float, sessions: int) -> Gate:
    """The gate with a limit of the noise that was found for its prior, from enough sessions on.

    The limit and not the noise itself: with sessions that agree by luck for both baseline and prior, 3.7 % of healthy
    nights were red where the limit gives half of that. Values that never moved say nothing: people declare exactness.
    """
    return replace(gate, cv=cv) if gate.cv is None and cv > 0 and sessions >= stored.ENOUGH_SESSIONS else gate


def _sample(runs: Measurement, metric: Metric) -> Sample:
    name, gate = metric.name, Gate(metric=metric, margin=metric.margin)
    sample = read(runs.of(name), gate, runs.invalid.get(name, ""))
    if sample.fault:
        raise ValueError(f"{name}: {sample.fault}")
    if len(sample.groups) < 2:  # noqa: PLR2004
        raise ValueError(f"{name}: all runs are of one session; a calibration needs two, and ten to be worth much")
    missing = len(runs_of(runs)) - len(sample.runs)
    if missing:
        raise ValueError(f"{name}: no value in {missing} runs")
    return sample


def _limit(sample: Sample) -> float:
    return math.sqrt(variance.upper_limit(sample.layout.variance, sample.layout.count - 1, LIMIT_TAIL))


def _visible(gate: Gate, sample: Sample) -> dict[int, float]:
    """Candidate runs, all of one session -> the smallest loss visible with these sessions as baseline."""
    return {look.runs: _visible_after(gate, sample, look.runs) for look in LOOKS}


def _visible_after(gate: Gate, sample: Sample, runs: int) -> float:
    candidate = variance.sessions([[0.0] * runs])
    return words.visible_loss(gate, stored.compare(gate, sample.layout, candidate).visible)


def _noise(gate: Gate, sample: Sample) -> Noise:
    layout = sample.layout
    several = layout.within_df > 0 and layout.between + layout.within > 0
    visible = _visible(gate, sample)
    return Noise(
        metric=gate.metric.name,
        cv=layout.variance**0.5,
        cv_limit=_limit(sample),
        session_share=variance.session_share(layout) if several else None,
        session_share_interval=variance.session_share_interval(layout, SHARE_TAIL) if several else None,
        autocorrelation=autocorrelation([mean(group) for group in sample.groups]),
        visible=tuple(visible.items()),
        margin=auto_margin(visible[MARGIN_RUNS]),
        false_alarms=0,
    )


def _replays(runs: Measurement, gates: Sequence[Gate]) -> list[list[Verdict]]:
    sessions = dict.fromkeys(session for _, session in runs_of(runs))
    return [
        sequential(_part(runs, gates, {*sessions} - {session}), _part(runs, gates, {session}), gates)
        for session in sessions
    ]


def _part(runs: Measurement, gates: Iterable[Gate], sessions: set[str]) -> Measurement:
    names = [gate.metric.name for gate in gates]
    return Measurement({name: tuple(each for each in runs.of(name) if each.session in sessions) for name in names})
