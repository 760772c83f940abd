"""Recent sessions: which saved runs are a second reference, and which are not."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.checks import comparability
from pytest_llmperf.history import Recent, recent
from pytest_llmperf.history.recent import FEWEST_SESSIONS, MOST_SESSIONS
from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.finding import Finding, Status
from tests.unit.history.nights import FACTS, NOW, save
from tests.unit.metrics.examples import records, request

THROUGHPUT = "output_throughput"
METRICS = THROUGHPUT, "mean_e2el_ms", "request_goodput"


HALF_FAILED = records(request([100]), request([], outcome=1, reason="HTTP 500"))


def asked(root: Path, **fields: Any) -> Recent:
    usual: dict[str, Any] = {"facts": FACTS, "now": NOW}
    return recent(root, "suite", "new/chat", METRICS, **{**usual, **fields})


def seen(root: Path, **fields: Any) -> list[float]:
    found = asked(root, **fields).measurement
    return [] if found is None else [each.value for each in found.of(THROUGHPUT)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Six nights, of 101 tok/s yesterday to 106 six days ago."""
    for night in range(6, 0, -1):
        save(tmp_path, night, {THROUGHPUT: 100.0 + night})
    return tmp_path


NIGHTS = [106.0, 105.0, 104.0, 103.0, 102.0, 101.0]


def test_sessions_are_a_reference_in_order_of_time(root: Path) -> None:
    save(root, 0.99, {THROUGHPUT: 90.0}, session="20251129T030000-new")  # the second run of last night
    found = asked(root)
    assert found.measurement is not None
    assert [each.value for each in found.measurement.of(THROUGHPUT)] == [*NIGHTS, 90.0]
    assert [each.order for each in found.measurement.of(THROUGHPUT)] == list(range(7))
    assert len({each.session for each in found.measurement.of(THROUGHPUT)}) == found.sessions == 6


def test_the_newest_twenty_alone(tmp_path: Path) -> None:
    for night in range(30, 0, -1):
        for run in (0, 0.001):
            save(tmp_path, night - run, {THROUGHPUT: float(night)}, session=f"night {night}")
    assert seen(tmp_path) == [float(night) for night in range(MOST_SESSIONS, 0, -1) for _ in range(2)]


@pytest.mark.parametrize(
    "other",
    [
        {"arm": "harmed", "case": "new"},
        {"arm": "old", "case": "old"},
        {"suite": "another"},
        {"role": "reference"},
        {"role": "confirmation"},
        {"role": "warmup"},
        {"facts": {comparability.INJECTED: "tpot=+10%"}},
        {"facts": {"hardware": "another"}},
        {"facts": {"workload": "sha256:longer"}},
        {"facts": {"weights": "dummy"}},
        {"facts": {"acceptance": "synthetic"}},
        {"facts": {"client_placement": "remote"}},
        {"facts": {"engine": "external", comparability.ASKED_AS: "endpoint"}},
        {"facts": {"engine": "sglang"}},
        {"facts": {comparability.ASKED_AS: "A/B"}},
        {"facts": {comparability.ASKED_AS: "engines.new.args=--fast"}},
        {"records": HALF_FAILED},
        {"records": HALF_FAILED, "failures": FailureGate(allowed=0.1, limit=0.4)},
        {"findings": (Finding(check="x", status=Status.FAIL, policy="require", metrics=None),)},
        {"findings": (Finding(check="x", status=Status.FAIL, policy="require", metrics=frozenset([THROUGHPUT])),)},
        {"findings": (Finding(check="client_cpu", status=Status.FAIL, policy="require", metrics=frozenset()),)},
    ],
    ids=str,
)
def test_what_is_no_recent_session(other: dict[str, Any], root: Path) -> None:
    save(root, 0.5, {THROUGHPUT: 1.0}, **other)
    assert seen(root) == NIGHTS


@pytest.mark.parametrize(
    "same",
    [
        {"facts": {"engine_version": "0.27.0", "node": "node2", "driver": "590"}},
        {"findings": (Finding(check="x", status=Status.FAIL, policy="warn"),)},
        {"records": HALF_FAILED, "failures": FailureGate(allowed=0.1, limit=0.5)},
        {"findings": (Finding(check="x", status=Status.FAIL, policy="require", metrics=frozenset(["mean_e2el_ms"])),)},
    ],
    ids=str,
)
def test_what_is_one(same: dict[str, Any], root: Path) -> None:
    save(root, 0.5, {THROUGHPUT: 1.0}, **same)
    assert seen(root) == [*NIGHTS, 1.0]


def test_nights_that_were_asked_in_another_way_have_recent_sessions_of_their_own(root: Path) -> None:
    asked_as = {comparability.ASKED_AS: "engines.new.args=--fast"}
    for night in range(FEWEST_SESSIONS, 0, -1):
        save(root, night - 0.5, {THROUGHPUT: 200.0 + night}, facts=asked_as)
    assert seen(root, facts={**FACTS, **asked_as}) == [205.0, 204.0, 203.0, 202.0, 201.0]
    assert seen(root) == NIGHTS


def test_the_sessions_that_are_being_judged_are_not_their_own_reference(root: Path) -> None:
    save(root, 0, {THROUGHPUT: 1.0}, session="tonight")
    assert seen(root, without={"tonight"}) == NIGHTS


def test_too_old_is_sixty_days(root: Path) -> None:
    save(root, 59.9, {THROUGHPUT: 60.0})
    save(root, 60.1, {THROUGHPUT: 61.0})
    assert seen(root) == [60.0, *NIGHTS]


def test_what_ran_until_a_baseline_was_accepted_is_another_engine(root: Path) -> None:
    save(root, 0.5, {THROUGHPUT: 1.0}, session="later")
    assert seen(root, since=date(2025, 11, 24)) == [*NIGHTS[1:], 1.0]
    assert seen(root, since=date(2025, 11, 27)) == []  # three sessions are too few
    assert seen(root, since=date(9999, 12, 31)) == []


def test_runs_of_a_clock_that_was_ahead_are_no_nights(root: Path) -> None:
    for ahead in range(1, MOST_SESSIONS + 1):
        save(root, -ahead, {THROUGHPUT: 300.0})
    assert seen(root) == NIGHTS
    save(root, -0.006, {THROUGHPUT: 1.0})  # nine minutes: another machine's clock
    assert seen(root) == [*NIGHTS, 1.0]


def test_four_sessions_are_no_reference(tmp_path: Path) -> None:
    for night in range(FEWEST_SESSIONS - 1, 0, -1):
        save(tmp_path, night, {THROUGHPUT: 100.0})
        save(tmp_path, night, {THROUGHPUT: 100.0})
    assert asked(tmp_path).measurement is None
    save(tmp_path, 0.5, {THROUGHPUT: 100.0})
    assert len(seen(tmp_path)) == 9


def test_a_metric_that_few_sessions_have_is_left_out(root: Path) -> None:
    save(root, 0.5, {THROUGHPUT: 100.0, "mean_e2el_ms": 5.0})
    found = asked(root).measurement
    assert found is not None
    assert not found.of("mean_e2el_ms")


def test_answers_of_another_length_are_other_work(root: Path) -> None:
    """Each of the saved runs answered with two tokens."""
    assert seen(root, facts={**FACTS, comparability.OUTPUT: "2.0"}) == NIGHTS
    assert seen(root, facts={**FACTS, comparability.OUTPUT: "3.0"}) == []


def test_goodput_of_other_limits_is_left_out(root: Path) -> None:
    for night in range(6):
        save(
            root, night, {"request_goodput": 3.0, THROUGHPUT: 1.0}, facts={"slo": "ttft 100 ms"}, session=f"slo {night}"
        )
    measured = [asked(root, facts={**FACTS, "slo": slo}).measurement for slo in ("ttft 100 ms", "ttft 50 ms")]
    assert [each is not None and len(each.of("request_goodput")) for each in measured] == [6, 0]


def test_a_damaged_folder_is_counted_and_hides_no_other(root: Path) -> None:
    save(root, 0.5, {THROUGHPUT: 1.0}).joinpath("run.json").write_text("{")
    save(root, 0.4, {THROUGHPUT: 1.0}).joinpath("run.json").unlink()
    save(root, 0.3, {THROUGHPUT: 1.0}).joinpath("run.json").write_text(json.dumps({"date": "x"}))
    found = asked(root)
    assert found.unreadable == 3
    assert seen(root) == NIGHTS


def test_nothing_was_saved(tmp_path: Path) -> None:
    assert asked(tmp_path / "nowhere") == Recent(None, 0, 0)
