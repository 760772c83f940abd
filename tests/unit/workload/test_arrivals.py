from __future__ import annotations

import math
from random import Random
from statistics import fmean, pstdev
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.errors import DataError, UsageError
from pytest_llmperf.model.suite import DataFile, Load, Ramp, Trace, Workload
from pytest_llmperf.workload import Arrival, Material, plan
from pytest_llmperf.workload.arrivals import arrivals_ns, ramp_ns

WORDS = Workload(name="w", kind="words", requests=3, input_tokens=8, output_tokens=4)
SHAPES = st.one_of(st.just(1.0), st.just(math.inf), st.floats(0.05, 100))


def gaps(times: list[int]) -> list[float]:
    return [(later - earlier) / 1e9 for earlier, later in zip([0, *times], times, strict=False)]


def test_what_a_seed_means_never_changes() -> None:
    assert arrivals_ns(3, 2.0, 1.0, Random("seed")) == [92154498, 259471769, 1500000000]
    assert arrivals_ns(3, 2.0, 0.5, Random("seed")) == [271820014, 923273716, 1500000000]
    assert arrivals_ns(3, 2.0, 4.0, Random("seed")) == [310605680, 1298561198, 1500000000]


@given(count=st.integers(1, 200), rate=st.floats(0.01, 1000), shape=SHAPES, seed=st.integers())
def test_arrivals_ascend_and_end_at_count_over_rate(count: int, rate: float, shape: float, seed: int) -> None:
    times = arrivals_ns(count, rate, shape, Random(seed))
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] == pytest.approx(count / rate * 1e9, rel=1e-9, abs=1)


@pytest.mark.parametrize("shape", [0.2, 0.7, 1.0, 1.5, 4.0, 25.0])
def test_gaps_have_the_moments_of_vllms_gamma(shape: float) -> None:
    """``numpy.random.gamma(shape, 1 / (rate * shape))``: mean 1 / rate, deviation mean / sqrt(shape)."""
    found = gaps(arrivals_ns(40_000, 10.0, shape, Random(1)))
    deviation = pstdev(found)
    assert fmean(found) == pytest.approx(0.1)
    assert deviation == pytest.approx(0.1 / math.sqrt(shape), rel=0.04)
    skewness = fmean([((gap - 0.1) / deviation) ** 3 for gap in found])
    assert skewness == pytest.approx(2 / math.sqrt(shape), rel=0.15)


def test_poisson_gaps_are_exponential() -> None:
    found = gaps(arrivals_ns(20_000, 10.0, 1.0, Random(1)))
    assert sum(gap > 0.1 for gap in found) / len(found) == pytest.approx(math.exp(-1), abs=0.02)


VLLM = [
    (5, 4.0, None, [0.25, 0.5, 0.75, 1.0, 1.25]),
    (6, 1.0, Ramp(start=1, end=8), [1.0, 1.416666667, 1.679824561, 1.872132254, 2.023647405, 2.148647405]),
    (
        6, 1.0, Ramp(start=1, end=8, shape="exponential"),
        [1.0, 1.659753955, 2.095029237, 2.382203826, 2.571668397, 2.696668397],
    ),
    (4, 1.0, Ramp(start=10, end=2), [0.1, 0.236363636, 0.450649351, 0.950649351]),
    (1, 1.0, Ramp(start=2, end=4), [0.5]),
]  # fmt: skip


@pytest.mark.parametrize(("count", "rate", "ramp", "times_s"), VLLM)
def test_constant_arrivals_are_vllms(count: int, rate: float, ramp: Ramp | None, times_s: list[float]) -> None:
    """Of ``get_request`` of vLLM 0.32.0 with ``burstiness=inf``, its clock replaced."""
    constant = Random(1)
    found = arrivals_ns(count, rate, math.inf, constant) if ramp is None else ramp_ns(count, ramp, math.inf, constant)
    assert [time / 1e9 for time in found] == pytest.approx(times_s, abs=1e-8)


@given(
    count=st.integers(1, 100), start=st.floats(0.01, 100), end=st.floats(0.01, 100), shape=SHAPES, seed=st.integers(),
    how=st.sampled_from(["linear", "exponential"]),
)  # fmt: skip
def test_a_ramp_is_as_long_in_every_run(
    count: int, start: float, end: float, shape: float, seed: int, how: Literal["linear", "exponential"]
) -> None:
    ramp = Ramp(start=start, end=end, shape=how)
    times = ramp_ns(count, ramp, shape, Random(seed))
    assert times == sorted(times)
    assert times[-1] == pytest.approx(ramp_ns(count, ramp, math.inf, Random(0))[-1], rel=1e-9, abs=1)


def test_a_trace_is_replayed_at_its_times_and_lengths() -> None:
    arrivals = [Arrival(at_s=0.0), Arrival(at_s=1.5, input_tokens=5), Arrival(at_s=1.5, output_tokens=9)]
    material = Material(arrivals=[*arrivals, Arrival(at_s=9.0)])
    load = Load(kind="trace", trace=Trace(data=DataFile(path="t", sha256="0"), speed=3.0))
    made = plan(WORDS, load, seed=1, model_id="m", material=material)
    assert [(request.at_ns, request.input_tokens, request.output_tokens) for request in made.requests] == [
        (0, 8, 4), (500_000_000, 5, 4), (500_000_000, 8, 9),
    ]  # fmt: skip
    with pytest.raises(DataError, match="the trace has 2 lines, requests: 3 asks for more"):
        plan(WORDS, load, seed=1, model_id="m", material=Material(arrivals=arrivals[:2]))


@pytest.mark.parametrize(
    "load",
    [
        Load(kind="request_rate", value=1e-5),
        Load(kind="ramp", ramp=Ramp(start=1e-5, end=1e-5)),
        Load(kind="trace", trace=Trace(data=DataFile(path="t"), speed=1e-5)),
    ],
    ids=lambda load: load.kind,
)
def test_a_schedule_of_more_than_a_day_is_a_mistake(load: Load) -> None:
    material = Material(arrivals=[Arrival(at_s=0.0), Arrival(at_s=1.0), Arrival(at_s=3.0)])
    with pytest.raises(UsageError, match=r": 3 requests take 300000 s; more than 24 h is no run"):
        plan(WORDS, load, seed=1, model_id="m", material=material)


def test_every_load_plans_its_times() -> None:
    loads = [
        Load(kind="request_rate", value=2.0),
        Load(kind="request_rate", value=2.0, burstiness=0.5),
        Load(kind="request_rate", value=2.0, burstiness="constant"),
        Load(kind="ramp", ramp=Ramp(start=1, end=4)),
        Load(kind="ramp", ramp=Ramp(start=1, end=4), burstiness="constant"),
    ]
    times = [tuple(request.at_ns for request in plan(WORDS, load, seed=1, model_id="m").requests) for load in loads]
    assert len(set(times)) == 5
    assert times[2] == (500_000_000, 1_000_000_000, 1_500_000_000)
    assert times[4] == (1_000_000_000, 1_400_000_000, 1_650_000_000)
    assert [time[-1] for time in times[:3]] == [1_500_000_000] * 3
