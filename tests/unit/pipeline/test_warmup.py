from __future__ import annotations

import pytest

from pytest_llmperf.pipeline import warmup


@pytest.mark.parametrize(
    ("throughputs", "steady"),
    [
        ([], False),
        ([100.0], False),
        ([100.0, 104.0], True),
        ([100.0, 106.0], False),
        ([100.0, 200.0, 150.0], True),
        ([0.0, 0.0], True),
    ],
)
def test_steady_is_when_it_stops_getting_faster(throughputs: list[float], steady: bool) -> None:
    assert warmup.steady(throughputs) is steady


def warm_up(throughputs: list[float], *, at_most_s: float = 60, each_s: float = 1) -> tuple[bool, int]:
    """Whether it ended steady, and after how many runs."""
    done: list[float] = []

    def run_once() -> float:
        done.append(throughputs[len(done)])
        return done[-1]

    return warmup.warm_up(run_once, lambda: each_s * len(done), at_most_s), len(done)


def test_it_ends_as_soon_as_it_is_steady() -> None:
    assert warm_up([10, 20, 30, 30, 99]) == (True, 4)


def test_it_ends_at_its_time_and_says_that_it_is_not_steady() -> None:
    assert warm_up([2.0**n for n in range(20)], at_most_s=3, each_s=2) == (False, 2)


def test_it_ends_after_a_bounded_number_of_runs() -> None:
    assert warm_up([2.0**n for n in range(20)]) == (False, warmup.MOST_RUNS)
