"""docs/machine.md says of every check what the table does."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_llmperf.checks import invalidation
from pytest_llmperf.checks.conditions import CONDITIONS
from pytest_llmperf.model.telemetry import GpuSeries, Telemetry

PAGE = (Path(__file__).parents[3] / "docs" / "machine.md").read_text(encoding="utf-8")
ROWS = {
    name: policy
    for names, policy in re.findall(r"^\| (`.+?`) \| (\w+) \|", PAGE, re.MULTILINE)
    for name in re.findall(r"`(\w+)`", names)
}


def test_every_check_is_there_with_its_policy() -> None:
    before = {name: policy for name, policy in ROWS.items() if name in CONDITIONS}
    assert before == {name: condition.policy for name, condition in CONDITIONS.items()}
    assert list(before) == list(CONDITIONS)


def test_every_rule_of_a_window_is_there_with_its_policy() -> None:
    measured = Telemetry(window_ns=(0, 1), interval_ns=1, ticks=(0, 1), gpus=(GpuSeries(uuid="GPU-0"),))
    rules = {finding.check: finding.policy for finding in invalidation.examine(measured)}
    assert {name: policy for name, policy in ROWS.items() if name not in CONDITIONS} == rules
