"""The doctor's table: one row for each check, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.checks.conditions import GPU_CONDITIONS
from pytest_llmperf.errors import BusyError, ClientError, UsageError
from pytest_llmperf.model.ceiling import MISSED_SHARE, Ceiling
from pytest_llmperf.model.diagnosis import Diagnosis
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.model.suite import Hardware, Suite
from pytest_llmperf.pipeline import doctor, self_test
from pytest_llmperf.pipeline.doctor import Examination, client_finding, examine
from pytest_llmperf.telemetry import host as hosts
from pytest_llmperf.telemetry import machine as machines
from tests.machines import board, h200, with_gpu
from tests.unit.pipeline.fakes import case
from tests.unit.pipeline.test_self_test import step


@pytest.fixture(autouse=True)
def own_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_llmperf.leases.host.lease_folder", lambda: tmp_path)


def good(_: Examination) -> Iterable[Finding]:
    return [Finding(check="good", status=Status.PASS, policy="require")]


def broken(_: Examination) -> Iterable[Finding]:
    raise ClientError("a worker crashed\nTraceback\nOSError: no more files")


def test_a_check_that_breaks_is_a_failed_row_and_hides_no_other() -> None:
    found = examine(lambda _: None, [broken, good])
    assert [(finding.check, finding.status) for finding in found.findings] == [
        ("broken", Status.FAIL), ("good", Status.PASS),
    ]  # fmt: skip
    assert found.findings[0].value == "could not be checked: a worker crashed (OSError: no more files)"
    assert not found.fit


def test_a_machine_on_which_somebody_measures_is_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object, **__: object) -> object:
        raise BusyError("pid 1 has been measuring")

    monkeypatch.setattr(doctor, "HostLease", busy)
    found = examine(lambda _: None, [good])
    assert not found.fit
    assert "pid 1 has been measuring" in found.findings[0].value


@pytest.mark.parametrize(
    ("share", "status", "fit"), [(0.2, Status.PASS, True), (0.5, Status.FAIL, True), (0.51, Status.FAIL, False)]
)
def test_a_busy_cpu_is_a_warning_and_one_that_is_half_used_is_unfit(
    share: float, status: Status, fit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "busy_share", lambda _: share)
    found = examine(lambda _: None, [doctor.host_idle])
    assert (found.findings[0].status, found.fit) == (status, fit)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[Snapshot], None]:
    """What the doctor will find."""
    return lambda snapshot: monkeypatch.setattr(machines, "read", lambda: snapshot)


def examined(**wanted: Any) -> Diagnosis:
    return examine(lambda _: None, [doctor.machine], **wanted)


def test_a_recorded_machine_is_fit_and_kept(machine: Callable[[Snapshot], None]) -> None:
    machine(h200())
    found = examined()
    assert found.fit
    assert (found.profile, found.snapshot) == ("h200", h200())
    assert {finding.check for finding in found.findings} >= {
        "persistence_mode",
        "vboost",
        "foreign_processes",
        "fabric",
    }


def test_links_are_looked_at_where_there_are_several(machine: Callable[[Snapshot], None]) -> None:
    machine(with_gpu(board(), 3, nvlinks=(1,) * 17 + (0,)))
    assert [finding.check for finding in examined().findings if finding.invalidates] == ["nvlink"]


def test_a_machine_without_a_gpu_has_no_row_of_one_and_no_warning(machine: Callable[[Snapshot], None]) -> None:
    host = replace(h200().host, governor=Reading("powersave"), open_files=Reading(1024))
    machine(replace(h200(), gpus=(), driver=lacking(Answer.UNSUPPORTED, "nvmlInit: 12"), host=host))
    found = examined()
    assert found.profile == "cpu"
    assert not {finding.check for finding in found.findings} & {each.name for each in GPU_CONDITIONS}
    assert not [str(each) for each in found.findings if each.status is Status.FAIL and each.policy != "record"]


@pytest.mark.parametrize(("name", "fit"), [("h200", True), ("nvidia", True), ("b200", False), ("cpu", False)])
def test_a_machine_of_another_class_than_asked_for_is_unfit(
    name: str, fit: bool, machine: Callable[[Snapshot], None]
) -> None:
    machine(h200())
    assert examined(as_profile=name).fit is fit


def test_an_unknown_class_is_a_mistake_of_the_user() -> None:
    with pytest.raises(UsageError, match="no profile is called 'h20'; did you mean 'h200'"):
        examined(as_profile="h20")


def suite(**changes: Any) -> Suite:
    return replace(case(Path("suites")).suite, **changes)


def test_a_suite_says_what_is_expected_and_of_how_many(machine: Callable[[Snapshot], None]) -> None:
    machine(board(2))
    wanted = {"vboost": Expectation(policy="require", value="4")}
    found = examined(suite=suite(hardware=Hardware(gpu="H200", count=1), preconditions=wanted))
    assert [str(each) for each in found.findings if each.invalidates] == [
        "vboost: 0 of 4 (expected 4); nvidia-smi boost-slider -i 0 --vboost 4"
    ]
    assert "nvlink" not in [each.check for each in found.findings if each.status is Status.PASS]


def test_a_suite_for_any_hardware_asks_nothing_of_the_gpus(machine: Callable[[Snapshot], None]) -> None:
    machine(with_gpu(h200(), persistence=False))
    assert examined(suite=suite()).fit
    assert not examined().fit


def test_what_cannot_be_read_is_unverified_and_a_failure_of_a_strict_suite(machine: Callable[[Snapshot], None]) -> None:
    machine(with_gpu(h200(), persistence=lacking(Answer.NOT_PERMITTED, "a call: 4")))
    wanted = Hardware(gpu="H200", count=1)
    found = examined(suite=suite(hardware=wanted))
    assert (found.fit, found.unverified) == (True, ("persistence_mode",))
    strict = examined(suite=suite(hardware=wanted, strict=True))
    assert [each.value for each in strict.findings if each.invalidates] == [
        "not-permitted: unverified, and the suite is strict"
    ]


CARRIED = "50 tok/s are valid (3200 chunks/s, lag p50 0.10, p99 0.50 ms)"


@pytest.mark.parametrize(
    ("ceiling", "status", "says"),
    [
        (Ceiling(workers=1, steps=(step(1, 16), step(1, 64, tails=False), step(1, 256, "client"))), Status.PASS,
         f"64 streams at {CARRIED}, percentiles of ITL up to 16"),
        (Ceiling(workers=1, steps=(step(1, 64, tails=False),), bounded=True), Status.PASS,
         f"64 or more streams at {CARRIED}, percentiles of ITL at none"),
        (Ceiling(workers=1, steps=(step(1, 16), step(1, 64, "server"))), Status.FAIL, "16 streams"),
        (Ceiling(workers=1, steps=(step(1, 16, "client"),)), Status.FAIL, "no load that was tried was valid"),
        (Ceiling(workers=1, steps=()), Status.FAIL, "not tried"),
    ],
)  # fmt: skip
def test_what_a_ceiling_means(ceiling: Ceiling, status: Status, says: str) -> None:
    finding = client_finding(ceiling)
    assert (finding.status, finding.policy) == (status, "require")
    assert says in finding.value


def test_the_documentation_names_the_loads() -> None:
    text = " ".join((Path(__file__).parents[3] / "docs" / "doctor.md").read_text(encoding="utf-8").split())
    assert f"carries {self_test.MODEST} streams at {self_test.TOKENS_PER_S} tok/s" in text
    assert f"each tick of {1000 // self_test.TOKENS_PER_S} ms" in text
    assert f"an answer has {self_test.TOKENS} tokens" in text
    assert f"at most {self_test.MOST_WORKERS}" in text
    assert f"more than {MISSED_SHARE:.0%}".replace("%", " %") in text


def test_the_load_that_was_too_much_is_the_evidence() -> None:
    finding = client_finding(Ceiling(workers=1, steps=(step(1, 64), step(1, 256, "client"))))
    assert finding.evidence == "256 streams: client"


def test_several_workers_that_carry_no_more_are_no_unfit_machine() -> None:
    assert not client_finding(Ceiling(workers=8, steps=(step(8, 4096, "server"),))).invalidates
