"""The class of hardware that a case has here, before anything of it is started."""

from __future__ import annotations

from pytest_llmperf.engines.base import engine_of
from pytest_llmperf.leases import gpu
from pytest_llmperf.model.case import Case
from pytest_llmperf.telemetry import host


def slug_here(case: Case) -> str | None:
    """As baseline paths have it: of the other machine that its engine runs on, or of this one.

    None where this machine has not the GPUs that the suite needs.
    """
    if (name := engine_of(case.arm).elsewhere(case.arm)) is not None:
        return host.elsewhere(name).slug
    wanted, names = case.suite.hardware, gpu.names()
    if wanted.gpu is None:
        return host.read(names).slug
    fitting = tuple(name for name in names if wanted.gpu.lower() in name.lower())[: wanted.count]
    return host.read(fitting).slug if fitting and len(fitting) == wanted.count else None
