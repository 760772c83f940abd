"""Fixtures for tests in Python: the same machinery as the suites, for what YAML cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_llmperf.leases.gpu import GpuLease
    from pytest_llmperf.plugin.facade import EngineServer, Llmperf


@pytest.fixture
def llmperf(request: pytest.FixtureRequest) -> Llmperf:
    """``measure(...)`` a case of a suite and ``judge(...)`` two measurements.

    The suite is the one of the marker ``@pytest.mark.llmperf(suite="path", engine="arm")``, or an argument of
    ``measure``.
    """
    from pytest_llmperf.plugin import facade, state  # noqa: PLC0415 (heavy; only for tests that ask)

    return facade.Llmperf(state.of(request.config), facade.Marked.of(request.node))


@pytest.fixture
def engine_server(request: pytest.FixtureRequest) -> EngineServer:
    """A started, ready engine: ``url``, ``model``, ``log`` and ``metrics()``.

    Which one is said by ``@pytest.mark.llmperf(suite="path", engine="arm")``. Consecutive tests with the same engine
    share the server; it is stopped when the next test does not need it.
    """
    from pytest_llmperf.plugin import facade, state  # noqa: PLC0415 (heavy; only for tests that ask)

    return facade.EngineServer.start(state.of(request.config), facade.Marked.of(request.node))


@pytest.fixture
def gpu_lease(request: pytest.FixtureRequest) -> Iterator[GpuLease]:
    """The GPUs of a test marked ``@pytest.mark.gpus(n)``, leased against every other process on this host.

    Skips the test where there are fewer than ``n`` GPUs; without a marker the lease is empty.
    """
    from pytest_llmperf.errors import UnavailableError  # noqa: PLC0415 (only for tests that ask)
    from pytest_llmperf.leases.gpu import GpuLease  # noqa: PLC0415
    from pytest_llmperf.telemetry import nvml  # noqa: PLC0415

    marker = request.node.get_closest_marker("gpus")
    count = 0 if marker is None else marker.args[0]
    try:
        lease = GpuLease.take(count, nvml.find)
    except UnavailableError as error:
        pytest.skip(str(error))
    with lease:
        yield lease
