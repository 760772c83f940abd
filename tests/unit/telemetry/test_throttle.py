"""The numbers of throttle counters are believed when nvidia-smi says the same by name, and more than zeros."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.telemetry import smi
from pytest_llmperf.telemetry.nvml.throttle import BEFORE, FAMILIES, SINCE_580, Family, calibrated

COUNTERS = (Path(__file__).parents[2] / "data" / "gpu" / "h200_counters.csv").read_text()
(RECORDED,) = smi.counters(COUNTERS).values()
"""Eleven seconds under the power cap, and no other throttling."""

FIELDS = {74: 10961959776, 76: 0, 269: 0, 270: 0, 271: 0}
"""The same machine, by number."""


def named(*values: int) -> dict[str, int]:
    return dict(zip(SINCE_580, values, strict=True))


def numbered(family: Family, *values: int, others: int = 0) -> dict[int, int]:
    """Fields of a driver that counts by this family; the other numbers are of other features."""
    own = dict(zip(family.values(), values, strict=True))
    return {number: own.get(number, others) for each in FAMILIES for number in each.values()}


def test_the_recorded_machine_proves_nothing_since_all_are_zero() -> None:
    assert RECORDED["power_cap_ns"] // 1000 == FIELDS[74] // 1000
    assert calibrated([(RECORDED, FIELDS)]) is None


@pytest.mark.parametrize("family", FAMILIES)
def test_the_family_that_agrees_is_taken(family: Family) -> None:
    looks = [(named(0, 0, 0), numbered(family, 0, 0, 0)), (named(5000, 0, 0), numbered(family, 5999, 0, 0))]
    assert calibrated(looks) == family


def test_a_renumbered_driver_is_not_read_by_the_other_numbers() -> None:
    """269 is there too, and is power smoothing."""
    assert calibrated([(named(5000, 0, 0), numbered(BEFORE, 5000, 0, 0, others=77))]) == BEFORE
    assert calibrated([(named(5000, 0, 0), numbered(SINCE_580, 5000, 0, 0, others=77))]) == SINCE_580


def test_two_that_agree_prove_nothing() -> None:
    both = {**numbered(BEFORE, 5000, 0, 0), **dict(zip(SINCE_580.values(), (5000, 0, 0), strict=True))}
    assert calibrated([(named(5000, 0, 0), both)]) is None


@pytest.mark.parametrize(
    "looks",
    [
        [],
        [({}, FIELDS)],
        [(named(5000, 0, 0), {})],
        [(named(5000, 0, 0), numbered(SINCE_580, 6000, 0, 0))],
        [(named(5000, 0, 0), numbered(SINCE_580, 5000, 0, 0)), (named(7000, 0, 0), numbered(SINCE_580, 5000, 0, 0))],
        [(named(5000, 0, 0), {269: 5000, 270: 0})],
    ],
)
def test_what_does_not_agree_is_not_believed(looks: list[tuple[dict[str, int], dict[int, int]]]) -> None:
    assert calibrated(looks) is None


COUNTS = st.lists(st.integers(min_value=0, max_value=10**12), min_size=3, max_size=3)


@given(st.sampled_from(FAMILIES), st.lists(COUNTS, max_size=4), st.integers(min_value=0, max_value=10**12))
def test_the_wrong_family_is_never_taken(family: Family, looks: list[list[int]], others: int) -> None:
    seen = [
        (named(*(count // 1000 * 1000 for count in counts)), numbered(family, *counts, others=others))
        for counts in looks
    ]
    found = calibrated(seen)
    same = all(count // 1000 == others // 1000 for counts in looks for count in counts)
    assert found in (None, family)
    if not same:
        assert (found is family) == any(count // 1000 for counts in looks for count in counts)
