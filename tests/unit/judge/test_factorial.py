"""Two options, each on and off."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pytest_llmperf.judge.factorial import Cell, factorial
from pytest_llmperf.model.measurement import Observation
from tests.unit.judge.worlds import THROUGHPUT, TPOT, gate

ORDER: tuple[Cell, ...] = (
    (False, False), (False, True), (True, True), (True, False), (True, False), (True, True), (False, True),
    (False, False),
)  # fmt: skip


def cells(
    first: float, second: float, both: float, *, noise: float = 0.004, drift: float = 0.0, seed: int = 1
) -> dict[Cell, list[Observation]]:
    """Two rounds of all four cells; effects in log."""
    rng = np.random.default_rng(seed)
    found: dict[Cell, list[Observation]] = {}
    for place, cell in enumerate(ORDER):
        effect = first * cell[0] + second * cell[1] + both * (cell[0] and cell[1])
        value = 100 * math.exp(effect + drift * place / 7 + noise * rng.normal())
        found.setdefault(cell, []).append(Observation(value, "s", place))
    return found


@pytest.mark.parametrize("drift", [0.0, 0.05])
def test_each_effect_is_found_on_a_drifting_machine(drift: float) -> None:
    found = factorial(gate(TPOT), cells(-0.05, 0.10, 0.20, drift=drift))
    assert found.first.change == pytest.approx(math.expm1(-0.05), abs=0.015)
    assert found.second.change == pytest.approx(math.expm1(0.10), abs=0.015)
    assert found.interaction.change == pytest.approx(math.expm1(0.20), abs=0.025)
    assert max(found.first.p, found.second.p, found.interaction.p) < 0.02


def test_it_is_least_squares() -> None:
    runs = cells(0.02, -0.03, 0.01, noise=0.02)
    found = factorial(gate(THROUGHPUT), runs)
    flat = sorted((o.order, c, o.value) for c, group in runs.items() for o in group)
    y = -np.log([value for _, _, value in flat])
    a, b = (np.array([c[i] for _, c, _ in flat], float) for i in (0, 1))
    design = np.column_stack([np.ones(8), [order for order, _, _ in flat], a, b, a * b])
    beta, rss, *_ = np.linalg.lstsq(design, y, rcond=None)
    se = np.sqrt(rss[0] / 3 * np.diag(np.linalg.inv(design.T @ design)))
    for place, influence in ((2, found.first), (3, found.second), (4, found.interaction)):
        assert influence.change == pytest.approx(np.expm1(-beta[place]))
        assert influence.p == pytest.approx(2 * stats.t.sf(abs(beta[place]) / se[place], 3))
        assert influence.interval[0] < influence.change < influence.interval[1]


def test_options_that_do_nothing_are_seldom_credited() -> None:
    shown = [factorial(gate(TPOT), cells(0, 0, 0, noise=0.02, seed=seed)).interaction.p <= 0.05 for seed in range(400)]
    assert sum(shown) / 400 == pytest.approx(0.05, abs=0.033)


def test_what_only_the_pair_does_is_credited_to_neither() -> None:
    found = factorial(gate(THROUGHPUT), cells(0.0, 0.0, 0.076))
    assert found.interaction.change == pytest.approx(0.079, abs=0.02)
    assert abs(found.first.change) < 0.012
    assert abs(found.second.change) < 0.012


def test_what_cannot_be_compared_says_so() -> None:
    whole = cells(0, 0, 0)
    with pytest.raises(ValueError, match=r"no run with both"):
        factorial(gate(TPOT), {cell: runs for cell, runs in whole.items() if not all(cell)})
    with pytest.raises(ValueError, match="one order in time"):
        factorial(gate(TPOT), {cell: [Observation(1.0, "s", 0)] for cell in whole})
    with pytest.raises(ValueError, match="no degree of freedom"):
        factorial(gate(TPOT), {cell: runs[:1] for cell, runs in whole.items()})
