"""What many nights say together."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.judge.history import Night, creep, modes, slow_nodes, trend
from tests.unit.judge.worlds import ACCEPTANCE, E2EL, THROUGHPUT, TPOT, gate

GATE = gate(TPOT, 0.05)


def series(rng: np.random.Generator, nights: int, *, again: float = 0.0, cv: float = 0.02) -> list[float]:
    """TPOTs of healthy nights around 15 ms, lag-1 correlated by ``again``."""
    level, values = rng.normal(), []
    for _ in range(nights):
        level = again * level + math.sqrt(1 - again**2) * rng.normal()
        values.append(15 * math.exp(cv * level))
    return values


def test_a_step_is_found_with_its_size_and_its_night() -> None:
    rng = np.random.default_rng(1)
    values = series(rng, 40) + [1.06 * value for value in series(rng, 20)]
    (point,) = trend(values, GATE).points
    assert abs(point.at - 40) <= 2
    assert point.change == pytest.approx(0.06, abs=0.015)
    assert point.before == pytest.approx(15, rel=0.01)
    assert point.after == pytest.approx(15.9, rel=0.01)
    assert point.worse


def test_a_gain_is_a_change_too_and_not_worse() -> None:
    rng = np.random.default_rng(1)
    values = [1 / value for value in series(rng, 30)] + [1.1 / value for value in series(rng, 30)]
    (point,) = trend(values, gate(THROUGHPUT, 0.05)).points
    assert point.change > 0
    assert not point.worse


def test_correlated_nights_make_change_points_doubtful() -> None:
    rng = np.random.default_rng(3)
    assert trend(series(rng, 150, again=0.7), gate(TPOT, 0.3)).doubtful
    assert not trend(series(rng, 150), gate(TPOT, 0.3)).doubtful
    assert trend([15.0] * 3, GATE).autocorrelation is None


def test_only_the_latest_sessions_are_looked_at_and_counted_from_the_first() -> None:
    rng = np.random.default_rng(1)
    values = series(rng, 150) + [1.2 * v for v in series(rng, 100)] + [1.4 * v for v in series(rng, 100)]
    (point,) = trend(values, GATE).points
    assert abs(point.at - 250) <= 1


def test_what_creeps_is_seen_against_the_anchor() -> None:
    values = [15 * 1.003**night for night in range(40)]
    found = creep(values, 15.0, GATE)
    assert found is not None
    assert found.change == pytest.approx(1.003**36 - 1, rel=0.01)
    assert found.nights == 20  # 1.003 ** 17 is 1.05, and the mean is three nights behind
    assert creep(values[:15], 15.0, GATE) is None
    assert creep(values[-6:], 15.0, GATE) is None  # fewer nights than it takes
    assert creep([1 / value for value in values], 1 / 15, gate(THROUGHPUT, 0.05)) is not None
    assert creep(values, 15.0, gate(THROUGHPUT, 0.05)) is None  # more is better


def test_a_loss_that_was_mended_is_no_creep() -> None:
    assert creep([17.0] * 20 + [15.0] * 7, 15.0, GATE) is None


TURNS = [2.6, 4.1, 4.15, 2.55, 4.05, 4.1, 2.62, 2.58, 4.12, 2.6, 4.08, 2.61]


def test_two_modes_are_two_modes() -> None:
    found = modes(TURNS, gate(THROUGHPUT, 0.05))
    assert str(found) == "two modes: 2.59 and 4.1 tok/s"
    assert found is not None
    assert (found.low_sessions, found.high_sessions) == (6, 6)


@pytest.mark.parametrize(
    "values",
    [
        [2.6] * 10,
        TURNS[:7],
        [2.6, 2.61] * 5 + [4.1, 4.11] * 5,
        [2.6, 2.61] * 4 + [4.1, 4.11] * 4 + [2.6, 2.61] * 4,
        [4.1, 4.11] * 6 + [2.6],
        [4.1, 4.102] * 6,
    ],
    ids=["one value", "too few", "a step", "an excursion", "one outlier", "modes within the floor"],
)
def test_what_is_no_pair_of_modes(values: list[float]) -> None:
    assert modes(values, gate(THROUGHPUT, 0.05)) is None


@pytest.mark.parametrize("nights", [8, 12, 20, 60])
def test_noise_has_one_mode(nights: int) -> None:
    rng = np.random.default_rng(nights)
    found = sum(modes(series(rng, nights, cv=0.05), GATE) is not None for _ in range(300))
    assert found <= 9


GATES = {f"{name} {case}": gate(name) for name in (THROUGHPUT, TPOT, E2EL) for case in range(4)}


def cluster(rng: np.random.Generator, slow: dict[str, float], nights: int = 24, nodes: int = 4) -> list[Night]:
    """Twelve metrics a night, with half of the noise shared; nodes take turns."""
    found = []
    for night in range(nights):
        node, luck = f"node{night % nodes}", rng.normal()
        worse = {name: slow.get(node, 0.0) + 0.012 * (math.sqrt(0.5) * (luck + rng.normal())) for name in GATES}
        found.append(Night(node=node, values={n: 100 * math.exp(GATES[n].sign * d) for n, d in worse.items()}))
    return found


def test_a_slow_node_is_named() -> None:
    (found,) = slow_nodes(cluster(np.random.default_rng(1), {"node2": math.log(1.038)}), GATES)
    assert found.node == "node2"
    assert found.change == pytest.approx(0.038, abs=0.012)
    assert str(found).endswith(f" % slow on {found.slow} of 12 metrics, 6 nights")
    assert found.slow >= 10


def test_healthy_and_fast_nodes_are_not_named() -> None:
    rng = np.random.default_rng(2)
    assert sum(bool(slow_nodes(cluster(rng, {}), GATES)) for _ in range(150)) <= 2
    assert not slow_nodes(cluster(rng, {"node1": -0.06}), GATES)


def test_a_node_needs_nights_and_others_to_compare_with() -> None:
    rng = np.random.default_rng(3)
    assert not slow_nodes(cluster(rng, {"node0": 0.2}, nights=8), GATES)
    assert not slow_nodes(cluster(rng, {"node0": 0.2}, nights=24, nodes=1), GATES)
    assert not slow_nodes([], GATES)


def test_metrics_without_a_scale_of_shares_are_left_out() -> None:
    nights = [Night(node=f"n{i % 2}", values={ACCEPTANCE: 2.0 + i % 2}) for i in range(12)]
    assert not slow_nodes(nights, {ACCEPTANCE: gate(ACCEPTANCE)})


def test_a_metric_that_some_nights_lack_is_compared_where_it_is() -> None:
    nights = cluster(np.random.default_rng(1), {"node2": 0.038})
    thinned = [Night(node=n.node, values=dict(list(n.values.items())[: 12 - i % 3])) for i, n in enumerate(nights)]
    (found,) = slow_nodes(thinned, GATES)
    assert (found.node, found.nights) == ("node2", 6)


@given(order=st.permutations(range(24)))
def test_the_order_of_nights_does_not_matter_to_nodes(order: list[int]) -> None:
    nights = cluster(np.random.default_rng(1), {"node2": 0.04})
    assert slow_nodes([nights[i] for i in order], GATES) == slow_nodes(nights, GATES)
