"""Nights of 8 cases x 5 metrics: how often a healthy night is red, what a loss looks like, and what it costs.

``LLMPERF_NIGHTS=3000 pytest --log-cli-level=INFO`` on this file shows the figures of docs/verdicts.md.
"""

from __future__ import annotations

import logging
import math
import os

import numpy as np
import pytest

from pytest_llmperf.model.verdict import Word
from tests.unit.judge.nights import GATES, Night, World, night

LOG = logging.getLogger(__name__)
NIGHTS = int(os.environ.get("LLMPERF_NIGHTS", "25"))


def nights(world: World) -> list[Night]:
    rng = np.random.default_rng(20261130)
    return [night(world, rng) for _ in range(NIGHTS)]


def at_most(bar: float) -> float:
    """A bar with three standard errors of room for the number of nights."""
    return bar + 3 * math.sqrt(bar * (1 - bar) / NIGHTS)


def at_least(bar: float) -> float:
    return bar - 3 * math.sqrt(bar * (1 - bar) / NIGHTS)


@pytest.mark.parametrize("sessions", [20, 5])
def test_a_healthy_night_is_seldom_red_and_cheap(sessions: int) -> None:
    found = nights(World(sessions=sessions))
    red = sum(each.red for each in found) / NIGHTS
    before = sum(each.red_before for each in found) / NIGHTS
    runs = np.mean([each.runs for each in found])
    settled = np.mean([[n == 1 for n in each.runs] for each in found])
    LOG.info("healthy, %d sessions: red %.2f %% (before %.2f %%)", sessions, 100 * red, 100 * before)
    LOG.info("healthy, %d sessions: %.2f runs a case, %.0f %% settled by one", sessions, runs, 100 * settled)
    assert red <= at_most(0.025)
    if sessions == 20:
        assert runs <= 2.4
        assert settled >= 0.5


@pytest.mark.parametrize(("sessions", "multiple", "bar"), [(20, 2.0, 0.97), (5, 2.0, 0.90), (20, 1.0, 0.60)])
def test_one_metric_that_is_worse(sessions: int, multiple: float, bar: float) -> None:
    found = nights(World(sessions=sessions, losses={(0, 1): multiple}))
    red = sum(each.red for each in found) / NIGHTS
    passed = sum(each.after[0][1].word in {Word.PASSED, Word.IMPROVED} for each in found) / NIGHTS
    LOG.info("TPOT of one case at %g x margin, %d sessions: red %.1f %%, passed %.1f %%",
             multiple, sessions, 100 * red, 100 * passed)  # fmt: skip
    assert red >= at_least(bar)
    assert passed <= at_most(0.10)


def test_one_case_at_its_margins() -> None:
    found = nights(World(losses={(0, metric): 1.0 for metric in range(len(GATES))}))
    red = sum(each.red for each in found) / NIGHTS
    LOG.info("all metrics of one case at their margins, 20 sessions: red %.1f %%", 100 * red)
    assert red >= at_least(0.96)
