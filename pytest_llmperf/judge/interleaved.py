"""A candidate against an arm measured in the same session, runs of both alternating in time.

Least squares with a time trend and the data's own variance: a drift of the machine is shared by both arms and goes into
the trend. No class prior, no family: one test at 5 % each way, on a fixed number of runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_llmperf.judge.evidence import Evidence
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Observation
from pytest_llmperf.stats.trend import arm_effect

FEWEST_RUNS = 6
"""Both arms together. With fewer, three or less degrees of freedom are left and the test sees next to nothing."""


def compare(gate: Gate, reference: Sequence[Observation], candidate: Sequence[Observation]) -> Evidence:
    """The evidence from ``FEWEST_RUNS`` or more runs of both arms on one time axis.

    Raises:
        ValueError: two runs have the same ``order``, or the order cannot tell arm from time.
    """
    runs = [(each, 0) for each in reference] + [(each, 1) for each in candidate]
    orders = [each.order for each, _ in runs]
    if len(set(orders)) < len(orders):
        raise ValueError(f"{gate.metric.name}: the runs of both arms need one order in time, not {sorted(orders)}")
    effect = arm_effect(
        [gate.transform(each.value) for each, _ in runs], [arm for _, arm in runs], [float(order) for order in orders]
    )
    return Evidence(effect.difference, effect.se, effect.df, gate.null)
