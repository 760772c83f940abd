"""A baseline as text: canonical, so that a diff shows what moved and nothing else."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping

import yaml

from pytest_llmperf.baseline.baseline import Baseline

NAME_WIDTH = 24
"""Column of the values: fixed, so that a new metric adds one line and moves none."""


def render(baseline: Baseline, file: str) -> str:
    """The file's text; ``parse(render(baseline, file), file) == baseline``.

    One line per metric with every run's value grouped by session; metrics and facts sorted by name.

    Args:
        baseline: what to write.
        file: its path from the root of the repository, named in the header.
    """
    accepted = {
        "on": baseline.accepted.on.isoformat(),
        "commit": _scalar(baseline.accepted.commit),
        "why": _scalar(baseline.accepted.why),
    }
    lines = [
        f"# {file}. Written by --llmperf-accept; review the diff.",
        f"kind: {baseline.kind}",
        f"case: {_scalar(baseline.case)}",
        f"workload: {_scalar(baseline.workload)}",
        f"refuse_unless: {_flow(_quoted(baseline.refuse_unless))}",
        *(["machine:"] if baseline.machine else []),
        *(f"  {key}: {value}" for key, value in _quoted(baseline.machine).items()),
        "environment:" if baseline.environment else "environment: {}",
        *(f"  {key}: {value}" for key, value in _quoted(baseline.environment).items()),
        f"accepted: {_flow(accepted)}",
        f"sessions: [{', '.join(map(_scalar, baseline.sessions))}]",
        "metrics:",
        *(f"  {name + ': ':<{NAME_WIDTH}}{_values(groups)}" for name, groups in sorted(baseline.metrics.items())),
    ]
    return "\n".join(lines) + "\n"


def _quoted(facts: Mapping[str, str]) -> dict[str, str]:
    return {_scalar(key): _scalar(value) for key, value in sorted(facts.items())}


def _flow(written: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in written.items()) + "}"


def _values(groups: Iterable[Iterable[float]]) -> str:
    return "[" + ", ".join("[" + ", ".join(map(_number, group)) + "]" for group in groups) + "]"


def _number(value: float) -> str:
    """The shortest text that reads back as the same number; whole numbers without a point."""
    text = repr(value).removesuffix(".0")
    mantissa, exponent, power = text.partition("e")
    # YAML 1.1 takes 1e-05 for a string; it wants a point.
    return text if not exponent or "." in mantissa else f"{mantissa}.0e{power}"


def _scalar(text: str) -> str:
    """``text`` as YAML: plain where that reads back as the same string in any place, else in double quotes."""
    with contextlib.suppress(yaml.YAMLError, ValueError, TypeError):
        flow, block = yaml.safe_load(f"{{{text}: [{text}]}}"), yaml.safe_load(f"{text}: {text}")
        if flow == {text: [text]} and block == {text: text}:
            return text
    return yaml.safe_dump(text, default_style='"', width=math.inf, allow_unicode=True).rstrip("\n")
