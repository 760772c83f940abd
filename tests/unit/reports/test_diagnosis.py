"""What people read of a diagnosis."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_llmperf.model.ceiling import Ceiling
from pytest_llmperf.model.diagnosis import Diagnosis
from pytest_llmperf.model.finding import Finding, Policy, Status
from pytest_llmperf.pipeline.doctor import client_finding
from pytest_llmperf.reports import diagnosis
from tests.machines import h200
from tests.unit.pipeline.test_self_test import step

ALONE = Ceiling(
    workers=1,
    steps=(step(1, 16), step(1, 64, tails=False), replace(step(1, 256, "client"), why="client_cpu: 97% of a core")),
)
TOGETHER = Ceiling(workers=4, steps=(replace(step(4, 256, "server"), why="server-bound: 9 of 84 ticks", itl_ms=None),))
BUSY = Finding(
    check="host_idle", status=Status.FAIL, policy="warn", value="31% of the CPU in use", expected="at most 20%",
    remedy="find what else is running",
)  # fmt: skip
FOUND = Diagnosis(
    machine="8x NVIDIA H200",
    node="n1",
    findings=(BUSY, client_finding(ALONE), client_finding(TOGETHER)),
    client=(ALONE, TOGETHER),
)


def test_table_of_a_machine(golden: Callable[[str, str], None]) -> None:
    golden("doctor.txt", "\n".join(diagnosis.render(FOUND)) + "\n")


def test_a_machine_that_is_not_fit_says_so_first() -> None:
    broken = replace(FOUND, findings=(replace(BUSY, policy="require"),), client=())
    assert diagnosis.render(broken)[0] == "8x NVIDIA H200 (n1): NOT fit to measure"


def test_what_could_not_be_read_shows_its_evidence_and_what_does_not_apply_is_counted() -> None:
    unread = Finding(check="fabric", status=Status.UNKNOWN, policy="require", value="unknown", evidence="a call: 999")
    absent = Finding(check="numa", status=Status.NOT_APPLICABLE, policy="warn", value="no GPU")
    lines = diagnosis.render(replace(FOUND, findings=(unread, absent), client=()))
    assert lines == [
        "8x NVIDIA H200 (n1): fit to measure; required, and could not be read: fabric",
        "  fabric   unknown   a call: 999",
        "  1 more checks do not apply here",
    ]


@pytest.mark.parametrize(("policy", "word"), [("require", "fail"), ("compare", "differs"), ("record", "noted")])
def test_a_failure_is_called_by_what_it_means(policy: Policy, word: str) -> None:
    lines = diagnosis.render(replace(FOUND, findings=(replace(BUSY, policy=policy),), client=()))
    assert lines[1].split()[:2] == ["host_idle", word]


def test_json_has_every_figure() -> None:
    document = json.loads(diagnosis.render_json(replace(FOUND, snapshot=h200())))
    assert "snapshot" not in document
    assert document["fit"] is True
    assert document["findings"][0]["status"] == "fail"
    assert document["client"][0]["steps"][2]["why"] == "client_cpu: 97% of a core"
    assert document["client"][0]["steps"][0]["sent"]["gap_p99_ms"] == 21
