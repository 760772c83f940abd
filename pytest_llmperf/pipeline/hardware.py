"""The class of hardware that a case has here, before anything of it is started."""

from __future__ import annotations

from pytest_llmperf.engines.base import engine_of
from pytest_llmperf.model.case import Case
from pytest_llmperf.telemetry import host


def slug_here(case: Case, gpus: tuple[str, ...]) -> str | None:
    """As baseline paths have it: of the other machine that its engine runs on, or of this one.

    None where this machine has not the GPUs that the suite needs.

    Args:
        case: whose suite may need GPUs.
        gpus: the names of all that this machine has.
    """
    if (name := engine_of(case.arm).elsewhere(case.arm)) is not None:
        return host.elsewhere(name).slug
    wanted = case.suite.hardware
    if wanted.gpu is None:
        return host.read(gpus).slug
    fitting = tuple(filter(wanted.means, gpus))[: wanted.count]
    return host.read(fitting).slug if fitting and len(fitting) == wanted.count else None
