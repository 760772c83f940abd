from pathlib import Path

import pytest

from pytest_llmperf.clock import FakeClock
from pytest_llmperf.errors import BusyError, UnavailableError
from pytest_llmperf.leases.gpu import GpuLease
from pytest_llmperf.model.gpu import NamedGpu

EIGHT = tuple(NamedGpu(index, f"GPU-{index}", "NVIDIA H200") for index in range(8))


def take(count: int, folder: Path) -> GpuLease:
    return GpuLease.take(count, lambda: EIGHT, folder=folder, wait_s=1, clock=FakeClock())


def test_leases_do_not_share_gpus_and_give_them_back(tmp_path: Path) -> None:
    with take(4, tmp_path) as first, take(4, tmp_path) as second:
        assert first.gpus + second.gpus == EIGHT
        with pytest.raises(BusyError, match="fewer than 1 of 8 GPUs became free within 1 s"):
            take(1, tmp_path)
    with take(8, tmp_path) as all_of_them:
        assert all_of_them.gpus == EIGHT


def test_a_lease_that_is_not_had_whole_is_not_had_in_part(tmp_path: Path) -> None:
    with take(6, tmp_path):
        with pytest.raises(BusyError):
            take(3, tmp_path)
        with take(2, tmp_path) as rest:
            assert rest.gpus == EIGHT[6:]


def test_more_than_there_are(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="needs 9 GPUs; this machine has 8"):
        take(9, tmp_path)


def test_none_asks_nobody() -> None:
    with GpuLease.take(0, lambda: pytest.fail("asked")) as lease:
        assert lease.gpus == ()
