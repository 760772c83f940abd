from __future__ import annotations

import pytest

from pytest_llmperf.metrics.energy import energy_j
from pytest_llmperf.model.reading import NOT_READ, Reading
from pytest_llmperf.model.telemetry import Counters, GpuSeries, Telemetry


def gpu(before: int | None, after: int | None, uuid: str = "GPU-a") -> GpuSeries:
    ends = [Counters(energy_mj=NOT_READ if value is None else Reading(value)) for value in (before, after)]
    return GpuSeries(uuid=uuid, before=ends[0], after=ends[1])


def telemetry(*gpus: GpuSeries) -> Telemetry:
    return Telemetry(window_ns=(0, 10), interval_ns=1, ticks=(0, 10), gpus=gpus)


def test_it_is_the_sum_of_all_gpus() -> None:
    assert energy_j(telemetry(gpu(1000, 8000), gpu(500, 1000, "GPU-b"))) == 7.5


@pytest.mark.parametrize("other", [gpu(None, 5), gpu(5, None), gpu(5, 5), gpu(9, 5)])
def test_one_that_does_not_say_makes_it_unknown(other: GpuSeries) -> None:
    assert energy_j(telemetry(gpu(1000, 8000, "GPU-b"), other)) is None


def test_of_no_gpu_it_is_unknown() -> None:
    assert energy_j(telemetry()) is None
