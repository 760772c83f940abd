"""What saved cases are judged by."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_llmperf.errors import UsageError
from pytest_llmperf.pipeline.compare import gates_of_suite
from pytest_llmperf.pipeline.saved_cases import SavedCase
from tests.unit.pipeline import fakes

GATES = (
    fakes.gate("output_throughput", 0.4),
    fakes.gate("mean_e2el_ms", 0.3, reference="old"),
    fakes.gate("mean_tpot_ms", 0.2, reference="old", at_least=1.1),
    fakes.gate("mean_ttft_ms", 0.1, only_arms=("old",)),
)


def test_the_gates_of_a_suite_judge_its_cases_alone(tmp_path: Path) -> None:
    suite = fakes.case(tmp_path, *GATES).suite
    ours = SavedCase(suite="suite", case="new/chat", arm="new")
    gates_of = gates_of_suite(suite, [ours])
    assert [(gate.metric.name, gate.margin, gate.reference) for gate in gates_of(ours)] == [
        ("output_throughput", 0.4, None),
        ("mean_e2el_ms", 0.3, None),
    ]
    assert len(gates_of(SavedCase(suite="suite", case="old/chat", arm="old"))) == 3
    for other in (("suite", "new/code", "new"), ("another", "new/chat", "new"), ("suite", "new/chat", "harmed")):
        assert not gates_of(SavedCase(*other))


def test_a_suite_that_nothing_was_saved_of(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"x.llmperf.yaml: no saved case is of 'suite'; there is another"):
        gates_of_suite(fakes.case(tmp_path).suite, [SavedCase(suite="another", case="new/chat", arm="new")])
