"""A case's runs become its baseline, where the session was told so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_llmperf import baseline, judge
from pytest_llmperf.errors import UsageError, shown
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.pipeline.commit import commit_at
from pytest_llmperf.pipeline.measure import CaseMeasurement, measurement
from pytest_llmperf.pipeline.shelf import Shelf

ACCEPTED_RUNS = 3
"""Runs that one accepted session records; more runs of one session hardly sharpen a baseline, more sessions do."""


def record(work: CaseMeasurement, gates: Sequence[Gate], shelf: Shelf, prepared: CaseResult) -> list[Verdict]:
    """Measure and write the baselines of ``gates``; SKIPPED for each, or INVALID where the runs may not be one.

    Raises:
        UsageError: a variant was to become another arm's baseline.
        BaselineError: the runs cannot be a baseline, or the store cannot be written.
    """
    case = work.case
    if case.arm.variant_of is not None:
        raise UsageError(
            f"--llmperf-accept: {case.arm.name} is a variant of {case.arm.variant_of}, whose baseline its values would"
            " become; accept without --llmperf-engine"
        )
    work.run_candidate(ACCEPTED_RUNS)
    runs = measurement(work.of("candidate"))
    # One file holds all stored gates of its kind, also those that -m or -k left out: a part would lose the rest.
    places = {shelf.place(case, gate) for gate in gates}
    kept = [gate.metric.name for gate in work.recorded if shelf.place(case, gate) in places]
    if invalid := [name for name in kept if name in runs.invalid]:
        return judge.void(gates, f"nothing was recorded: {invalid[0]}: {runs.invalid[invalid[0]]}")
    accepted = baseline.accept(
        replace(prepared, environment=work.facts()),
        runs,
        why=shelf.why,
        on=work.clock.utc_now().date(),
        commit=commit_at(case.suite.file.parent),
        metrics=kept,
    )
    shelf.write(case, accepted)
    values = work.mean_values()
    return [
        Verdict(
            metric=gate.metric.name,
            word=Word.SKIPPED,
            margin=gate.margin,
            measured=values.get(gate.metric.name),
            runs=len(work.of("candidate")),
            cause=f"baseline recorded in {shown(shelf.place(case, gate))}",
        )
        for gate in gates
    ]
