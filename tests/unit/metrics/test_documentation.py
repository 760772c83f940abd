"""docs/metrics.md says of every metric what the table does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.metric import Metric

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"
BEGIN, END = "<!-- table: written by its test -->", "<!-- end -->"


def rows() -> Iterator[str]:
    yield "| metric | unit | better | item | default margin | definition |"
    yield "|---|---|---|---|---|---|"
    for metric in METRICS.values():
        if metric.group != "latency":
            yield row(metric.name, metric, margin(metric), metric.formula)
        elif metric.name.startswith("mean_"):
            tail = METRICS[metric.name.replace("mean_", "p99_")]
            both = f"{margin(metric)}, tails {margin(tail)}"
            yield row(metric.name.replace("mean_", "S_", 1), metric, both, metric.formula.removeprefix("mean of: "))


def row(name: str, metric: Metric, margins: str, formula: str) -> str:
    return f"| `{name}` | {metric.unit} | {metric.better} | {metric.group} | {margins} | {formula} |"


def margin(metric: Metric) -> str:
    return f"{metric.margin:.0%}" if metric.scale == "ratio" else f"{metric.margin:g} {metric.unit}".strip()


def test_the_table_is_current(request: pytest.FixtureRequest) -> None:
    table = "\n".join(rows())
    before, rest = DOCS.read_text(encoding="utf-8").split(BEGIN)
    committed, after = rest.split(END)
    if request.config.getoption("--update-golden"):
        DOCS.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
        return
    assert committed.strip() == table, "run this test with --update-golden and review the diff"


def test_the_statistics_of_a_latency_differ_in_the_statistic_alone() -> None:
    statistics = {"mean": "mean", "median": "median", "p90": "90th percentile", "p95": "95th percentile",
                  "p99": "99th percentile"}  # fmt: skip
    for metric in METRICS.values():
        if metric.group == "latency":
            statistic, _, rest = metric.name.partition("_")
            formula = METRICS[f"mean_{rest}"].formula.removeprefix("mean of: ")
            assert metric.formula == f"{statistics[statistic]} of: {formula}"
