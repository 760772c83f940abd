"""A baseline as text: canonical, so that a diff shows what moved and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_llmperf.baseline import noise
from pytest_llmperf.baseline.baseline import Baseline
from pytest_llmperf.baseline.noise import NAME_WIDTH
from pytest_llmperf.baseline.scalar import flow, number, scalar


def render(baseline: Baseline, file: str) -> str:
    """The file's text; ``parse(render(baseline, file), file) == baseline``.

    One line per metric with every run's value grouped by session; metrics and facts sorted by name. Of
    a calibration ``noise.rounded`` is what a file keeps.

    Args:
        baseline: what to write.
        file: its path from the root of the repository, named in the header.
    """
    accepted = {
        "on": baseline.accepted.on.isoformat(),
        "commit": scalar(baseline.accepted.commit),
        "why": scalar(baseline.accepted.why),
    }
    lines = [
        f"# {file}. Written by --llmperf-accept; review the diff.",
        f"kind: {baseline.kind}",
        f"case: {scalar(baseline.case)}",
        f"workload: {scalar(baseline.workload)}",
        f"refuse_unless: {flow(_quoted(baseline.refuse_unless))}",
        *(["machine:"] if baseline.machine else []),
        *(f"  {key}: {value}" for key, value in _quoted(baseline.machine).items()),
        "environment:" if baseline.environment else "environment: {}",
        *(f"  {key}: {value}" for key, value in _quoted(baseline.environment).items()),
        f"accepted: {flow(accepted)}",
        *(() if baseline.calibration is None else noise.lines(baseline.calibration)),
        f"sessions: [{', '.join(map(scalar, baseline.sessions))}]",
        "metrics:",
        *(f"  {name + ': ':<{NAME_WIDTH}}{_values(groups)}" for name, groups in sorted(baseline.metrics.items())),
    ]
    return "\n".join(lines) + "\n"


def _quoted(facts: Mapping[str, str]) -> dict[str, str]:
    return {scalar(key): scalar(value) for key, value in sorted(facts.items())}


def _values(groups: Iterable[Iterable[float]]) -> str:
    return "[" + ", ".join("[" + ", ".join(map(number, group)) + "]" for group in groups) + "]"
