"""Every figure of a saved run, computed again from its columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping

from pytest_llmperf import metrics
from pytest_llmperf.model.records import Outcome
from pytest_llmperf.model.review import Difference, Review
from pytest_llmperf.model.saved_run import SavedRun
from pytest_llmperf.model.slo import GOODPUT
from pytest_llmperf.pipeline import archive
from pytest_llmperf.pipeline.rereading import reread

SAME = 1e-9
"""Relative: another machine's numpy may add the same numbers in another order."""

Figures = Mapping[str, float | int | None]


def recompute(saved: SavedRun) -> dict[str, float]:
    """Every metric that the columns of a saved run have a value for, by today's definitions."""
    run = saved.run
    return metrics.compute(
        run.records, run.window_ns, run.acceptance, slo=saved.slo, gpus=saved.gpus or 0, energy_j=run.energy_j
    )


def review(saved: SavedRun) -> Review:
    """What a saved run says today, and what of it is stored otherwise; raw responses are parsed again, too."""
    run, values, totals = saved.run, recompute(saved), archive.totals(saved.run)
    return Review(
        id=run.id,
        folder=str(run.folder),
        suite=run.suite,
        case=run.case,
        arm=run.arm,
        role=run.role,
        session=run.session,
        order=run.order,
        started=run.started,
        version=saved.version,
        requests=len(run.records),
        outcomes={o.name.lower(): count for o in Outcome if (count := int((run.records.outcome == o).sum()))},
        reasons=dict(Counter(reason for reason in run.records.reason if reason).most_common()),
        token_source=archive.token_sources(run.records),
        client=run.client,
        acceptance=run.acceptance,
        slo="" if saved.slo is None else str(saved.slo),
        environment=run.environment,
        findings=run.findings,
        values=values,
        totals=totals,
        differences=tuple(differences({**saved.totals, **saved.values}, {**totals, **values}, _untold(saved))),
        rereading=None if run.folder is None else reread(run.folder, run.records),
    )


def differences(stored: Figures, now: Figures, untold: Collection[str] = ()) -> list[Difference]:
    """The stored figures that are not the same now; those of ``untold`` cannot be computed from what is stored.

    What is not stored is no difference: it is a metric that there was not when the run was saved.
    """
    return [
        Difference(name=name, stored=before, now=now.get(name))
        for name, before in stored.items()
        if name not in untold and not _same(before, now.get(name))
    ]


def _same(stored: float | None, now: float | None) -> bool:
    if stored is None or now is None:
        return stored is now
    return math.isclose(stored, now, rel_tol=SAME)


def _untold(saved: SavedRun) -> tuple[str, ...]:
    """What format 0 cannot tell: it has neither the number of GPUs nor the limits."""
    return ("output_throughput_per_gpu", *GOODPUT) if saved.gpus is None else ()
