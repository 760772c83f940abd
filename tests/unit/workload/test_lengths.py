from __future__ import annotations

from collections import Counter
from random import Random
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.model.suite import Lengths
from pytest_llmperf.workload.lengths import draw_lengths


def test_one_length() -> None:
    assert draw_lengths(7, 3, Random(1)) == [7, 7, 7]


def test_a_uniform_distribution_has_both_ends_equally_often() -> None:
    counts = Counter(draw_lengths(Lengths(min=3, max=6), 40_000, Random(1)))
    assert sorted(counts) == [3, 4, 5, 6]
    assert all(count == pytest.approx(10_000, rel=0.05) for count in counts.values())


def test_a_normal_distribution_has_its_moments() -> None:
    found = draw_lengths(Lengths(min=1, max=1000, mean=500, stdev=50), 20_000, Random(1))
    assert fmean(found) == pytest.approx(500, rel=0.01)
    assert pstdev(found) == pytest.approx(50, rel=0.03)


def test_a_normal_distribution_is_cut_off_and_does_not_pile_up_at_its_bounds() -> None:
    counts = Counter(draw_lengths(Lengths(min=90, max=110, mean=100, stdev=50), 42_000, Random(1)))
    assert (min(counts), max(counts)) == (90, 110)
    assert counts[90] == pytest.approx(counts[95], rel=0.1)
    assert counts[110] == pytest.approx(counts[105], rel=0.1)


@given(
    low=st.integers(1, 500), width=st.integers(0, 500), place=st.floats(0, 1), stdev=st.floats(1e-3, 1e6),
    seed=st.integers(),
)  # fmt: skip
def test_lengths_lie_within_their_bounds(low: int, width: int, place: float, stdev: float, seed: int) -> None:
    wanted = Lengths(min=low, max=low + width, mean=low + place * width, stdev=stdev)
    found = draw_lengths(wanted, 20, Random(seed))
    assert all(low <= length <= low + width for length in found)
    assert found == draw_lengths(wanted, 20, Random(seed))


def test_what_a_seed_means_never_changes() -> None:
    assert draw_lengths(Lengths(min=1, max=99), 5, Random("seed")) == [14, 24, 86, 29, 5]
    assert draw_lengths(Lengths(min=1, max=99, mean=50, stdev=20), 5, Random("seed")) == [29, 36, 72, 39, 17]
