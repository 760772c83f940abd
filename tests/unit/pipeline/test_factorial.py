"""Which saved runs are compared as two options in all four ways."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.errors import UsageError
from pytest_llmperf.history import read_facts
from pytest_llmperf.judge.factorial import CELL_NAMES, Cell
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.pipeline.factorial import compare_options
from pytest_llmperf.pipeline.saved_cases import SavedCase, by_case
from tests.unit.history.nights import NOW, save

VALUES = {"neither": 100.0, "first": 110.0, "second": 120.0, "both": 132.0}


def cells(root: Path, cases: tuple[str, ...] = ("new",), **of_both: Any) -> Mapping[Cell, list[SavedCase]]:
    """Two sessions of each, by turns, on a machine that slows by 1 % an hour; in both, effects multiply."""
    found = {}
    for place, (cell, name) in enumerate(CELL_NAMES.items()):
        folders = [
            save(
                root / name, hours / 24, {"output_throughput": VALUES[name] * 1.01**hours},
                session=f"{name} {case} {turn}", arm=case, case=case, **(of_both if name == "both" else {}),
            )
            for turn, hours in enumerate((7 - place, place)) for case in cases
        ]  # fmt: skip
        found[cell] = by_case(map(read_facts, folders), now=NOW)
    return found


def test_effects_that_multiply_are_those_of_each_alone(tmp_path: Path) -> None:
    (found,) = compare_options(cells(tmp_path))
    effect = found.effects["output_throughput"]
    assert effect.first.change == pytest.approx(0.10)
    assert effect.second.change == pytest.approx(0.20)
    assert effect.interaction.change == pytest.approx(0.0, abs=1e-9)
    assert effect.interaction.interval == pytest.approx((0.0, 0.0), abs=1e-9), "the machine's drift is no noise"
    assert (found.why, found.refused) == ("", {})


def test_several_cases_are_matched_by_their_ids(tmp_path: Path) -> None:
    four = dict(cells(tmp_path, ("new", "old")))
    assert [found.case for found in compare_options(four)] == ["new/chat", "old/chat"]
    four[True, False] = four[True, False][1:]
    assert [found.case for found in compare_options(four)] == ["old/chat"]
    four[False, False] = four[False, False][:1]
    with pytest.raises(
        UsageError, match="no case is in all four; neither: new/chat; first: old/chat; second: new/chat, "
    ):
        compare_options(four)


def test_other_work_is_not_compared(tmp_path: Path) -> None:
    (found,) = compare_options(cells(tmp_path, facts={"workload": "sha256:other"}))
    assert found.why == "both is not comparable with neither: workload: baseline sha256:w, here sha256:other"
    assert not found.effects


def test_invalid_runs_are_not_compared(tmp_path: Path) -> None:
    late = Finding(
        check="client_lag", status=Status.FAIL, policy="require", value="late", metrics=frozenset(["output_throughput"])
    )
    (found,) = compare_options(cells(tmp_path, findings=(late,)))
    assert found.refused["output_throughput"].startswith("both is invalid: client_lag: late (run ")
