"""From saved runs to histories: which values go in, which baseline is theirs, and what is one night."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.baseline import Accepted, Baseline, Store
from pytest_llmperf.checks.comparability import ANY_HARDWARE
from pytest_llmperf.history import read_facts
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.pipeline.history import anchors_of, history_of, slow_nodes_of
from pytest_llmperf.pipeline.saved_cases import SavedCase, by_case
from tests.unit.history.nights import FACTS, NOW, save
from tests.unit.pipeline import fakes

THROUGHPUT = fakes.gate("output_throughput")
LATE = Finding(
    check="client_lag", status=Status.FAIL, policy="require", value="late", metrics=frozenset(["mean_e2el_ms"])
)


def one_night(root: Path, **fields: Any) -> SavedCase:
    (case,) = by_case([read_facts(save(root, 1, {"output_throughput": 100.0}, **fields))], now=NOW)
    return case


def test_a_session_is_the_mean_of_its_valid_values(tmp_path: Path) -> None:
    values = {"output_throughput": 100.0, "mean_e2el_ms": 50.0}
    late = {"output_throughput": 104.0, "mean_e2el_ms": 90.0}
    folders = [
        save(tmp_path, 1, values, session="a"),
        save(tmp_path, 0.9, late, session="a", findings=(LATE,)),
        save(tmp_path, 0.5, late, session="b", findings=(LATE,)),
    ]
    (case,) = by_case(map(read_facts, folders), now=NOW)
    found = history_of(case, [THROUGHPUT, fakes.gate("mean_e2el_ms"), fakes.gate("mean_ttft_ms")], {})
    assert [session.values for session in found.sessions] == [
        {"output_throughput": 102.0, "mean_e2el_ms": 50.0},
        {"output_throughput": 104.0},
    ]
    assert [line.values for line in found.timelines] == [[102.0, 104.0], [50.0]]


def stored(root: Path, hardware: str, value: float, **other: str) -> None:
    refused = ("hardware", "weights", "acceptance", "client", "client_placement")
    baseline = Baseline(
        case="new/chat", workload=FACTS["workload"], environment={}, sessions=("a",),
        refuse_unless={key: FACTS[key] for key in refused} | {"hardware": hardware} | other,
        accepted=Accepted(on=date(2026, 10, 1), commit="c", why="w"), metrics={"output_throughput": ((value,),)},
    )  # fmt: skip
    store = Store(root)
    store.write(store.path(hardware, "suite", "new/chat"), baseline)


def test_the_baseline_of_the_machine_is_before_that_of_any(tmp_path: Path) -> None:
    case = one_night(tmp_path)
    assert anchors_of(case, Store(tmp_path / "b")) == {}
    stored(tmp_path / "b", ANY_HARDWARE, 90.0)
    assert anchors_of(case, Store(tmp_path / "b"))["output_throughput"].value == 90.0
    stored(tmp_path / "b", FACTS["hardware"], 95.0)
    assert anchors_of(case, Store(tmp_path / "b"))["output_throughput"].value == 95.0


@pytest.mark.parametrize(
    ("other", "fields"),
    [({"weights": "dummy"}, {}), ({}, {"arm": "harmed", "case": "new"})],
    ids=["not comparable", "a variant"],
)
def test_a_baseline_of_something_else_is_no_anchor(
    other: dict[str, str], fields: dict[str, str], tmp_path: Path
) -> None:
    stored(tmp_path / "b", FACTS["hardware"], 95.0, **other)
    assert anchors_of(one_night(tmp_path, **fields), Store(tmp_path / "b")) == {}


def test_cases_that_one_server_was_measured_with_are_one_night(tmp_path: Path) -> None:
    folders = [
        save(
            tmp_path, 20 - night, {"output_throughput": (95.0 if night % 4 == 0 else 100.0) + night % 3 / 10},
            arm=arm, case=arm, session=f"night {night}", facts={"node": f"node{night % 4}"},
        )
        for night in range(16) for arm in ("new", "old")
    ]  # fmt: skip
    cases = by_case(map(read_facts, folders), now=NOW)
    (slow,) = slow_nodes_of([history_of(case, [THROUGHPUT], {}) for case in cases])
    assert (slow.node, slow.nights, slow.metrics) == ("node0", 4, 2)
