"""What changed where a metric did."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
import pytest

from pytest_llmperf.judge.timeline import Anchor, Session, timeline
from tests.unit.judge.worlds import ACCEPTANCE, THROUGHPUT, TPOT, gate

LEVELS = (*np.random.default_rng(2).normal(15.0, 0.1, 20), *np.random.default_rng(3).normal(16.5, 0.1, 20))


def nights(values: Sequence[float], *, changes_at: int = 20, metric: str = TPOT) -> list[Session]:
    """One a day from 2026-10-01; the engine's version changes with one of them, and two nodes take turns."""
    return [
        Session(
            id=f"s{night}",
            started=date.fromordinal(date(2026, 10, 1).toordinal() + night).isoformat() + "T03:00:00+00:00",
            facts={"engine_version": "2" if night >= changes_at else "1", "node": f"node{night % 2}", "args": "-x"},
            values={metric: value},
        )
        for night, value in enumerate(values)
    ]


@pytest.mark.parametrize("changes_at", [19, 20, 21])
def test_what_is_new_where_the_level_changed(changes_at: int) -> None:
    """Noise may hide the first session of a new level."""
    found = timeline(nights(LEVELS, changes_at=changes_at), gate(TPOT))
    assert found is not None
    (step,) = found.steps
    assert (step.session.id, step.session.day) == ("s20", "2026-10-21")
    assert step.changed == {"engine_version": ("1", "2")}


def test_what_changed_at_another_time_is_no_cause() -> None:
    found = timeline(nights(LEVELS, changes_at=10), gate(TPOT))
    assert found is not None
    assert [step.changed for step in found.steps] == [{}]


def test_sessions_without_the_metric_are_not_in_its_line() -> None:
    sessions = nights(LEVELS)
    sessions[3:5] = [Session(id="x", started=sessions[3].started, facts={}, values=v) for v in ({}, {TPOT: 0.0})]
    found = timeline(sessions, gate(TPOT))
    assert found is not None
    assert len(found.values) == 38
    assert [step.session.id for step in found.steps] == ["s20"]
    assert timeline(sessions, gate(THROUGHPUT)) is None


def test_a_count_may_be_zero() -> None:
    found = timeline(nights([0.0, 0.0], metric=ACCEPTANCE), gate(ACCEPTANCE))
    assert found is not None
    assert found.values == [0.0, 0.0]


@pytest.mark.parametrize(
    ("accepted", "nights_beyond"), [(date(2026, 9, 30), 14), (date(2026, 11, 2), 1), (date(2026, 11, 3), 0)]
)
def test_only_sessions_after_the_baseline_creep_away_from_it(accepted: date, nights_beyond: int) -> None:
    found = timeline(nights(LEVELS), gate(TPOT, 0.09), Anchor(value=15.0, on=accepted))
    assert found is not None
    assert (found.creep.nights if found.creep else 0) == nights_beyond
