"""Inspection: which part of a machine a suite looks at, and what it expects there."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_llmperf.checks.condition import Subject
from pytest_llmperf.checks.profile import profile_of
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.model.suite import Hardware


def subject_of(
    snapshot: Snapshot,
    hardware: Hardware,
    expectations: Mapping[str, Expectation],
    *,
    own: frozenset[int] = frozenset(),
    earlier: Snapshot | None = None,
    baseline: Mapping[str, str] | None = None,
) -> Subject:
    """The machine as a suite sees it: with the GPUs that it asks for alone, as many as it wants.

    A suite for any hardware uses no GPU that it knows of, and nothing is asked of those that are there.
    """
    fitting = [] if hardware.gpu is None else [gpu for gpu in snapshot.gpus if _fits(gpu.name.value, hardware.gpu)]
    part = snapshot.of([gpu.uuid for gpu in fitting[: hardware.count]])
    return Subject(
        snapshot=part,
        profile=profile_of(part),
        gpus=hardware.count,
        own=own,
        earlier=earlier,
        baseline=baseline or {},
        expectations=expectations,
    )


def _fits(name: str | None, wanted: str) -> bool:
    """A GPU that is lost says no name; it counts as one of those that are asked for, so that it is reported."""
    return name is None or wanted.lower() in name.lower()
