"""Sweeps: the same arm and workload under several loads, in one line with its knee."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.verdict import Word
from pytest_llmperf.stats.knee import knee

THROUGHPUT, LATENCY = "output_throughput", "mean_e2el_ms"


def render(results: Sequence[CaseResult]) -> list[str]:
    """One line for each sweep of at least three loads whose throughput and latency could be measured.

    Cases that failed or are INVALID are no points of a sweep: a client that could not keep up looks like a knee.
    """
    sweeps: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for result in results:
        arm_and_workload, _, load = result.case.rpartition("/")
        if "/" in arm_and_workload and _is_measured(result):
            points = sweeps.setdefault((result.suite, arm_and_workload), {})
            points[load] = result.metrics[THROUGHPUT], result.metrics[LATENCY]
    return [line for (suite, name), points in sweeps.items() if (line := _line(f"{suite}: {name}", points))]


def _is_measured(result: CaseResult) -> bool:
    valid = not result.failure and all(verdict.word is not Word.INVALID for verdict in result.verdicts)
    return valid and result.metrics.get(THROUGHPUT, 0) > 0 and result.metrics.get(LATENCY, 0) > 0


def _line(name: str, points: dict[str, tuple[float, float]]) -> str:
    best = knee(points)
    if best is None:
        return ""
    most = max(points, key=lambda load: points[load][0])
    text = f"sweep of {name}, {len(points)} loads: knee at {_point(best, points)}"
    return f"{text}, the highest throughput too" if most == best else f"{text}; most at {_point(most, points)}"


def _point(load: str, points: dict[str, tuple[float, float]]) -> str:
    throughput, latency = points[load]
    return f"{load}, {throughput:.4g} tok/s at a mean E2EL of {latency:.4g} ms"
