"""The doctor's table: one row for each check, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from pytest_llmperf.errors import BusyError, ClientError
from pytest_llmperf.model.ceiling import Ceiling
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.pipeline import doctor
from pytest_llmperf.pipeline.doctor import Examination, client_finding, examine
from pytest_llmperf.telemetry import host as hosts
from tests.unit.pipeline.test_self_test import step


@pytest.fixture(autouse=True)
def own_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_llmperf.leases.host.lease_folder", lambda: tmp_path)


def good(_: Examination) -> Iterable[Finding]:
    return [Finding(check="good", status=Status.PASS, policy="require")]


def broken(_: Examination) -> Iterable[Finding]:
    raise ClientError("a worker crashed")


def test_a_check_that_breaks_is_a_failed_row_and_hides_no_other() -> None:
    found = examine(lambda _: None, [broken, good])
    assert [(finding.check, finding.status) for finding in found.findings] == [
        ("broken", Status.FAIL), ("good", Status.PASS),
    ]  # fmt: skip
    assert "a worker crashed" in found.findings[0].value
    assert not found.fit


def test_a_machine_on_which_somebody_measures_is_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object, **__: object) -> object:
        raise BusyError("pid 1 has been measuring")

    monkeypatch.setattr(doctor, "HostLease", busy)
    found = examine(lambda _: None, [good])
    assert not found.fit
    assert "pid 1 has been measuring" in found.findings[0].value


def test_a_busy_cpu_is_a_warning() -> None:
    [idle] = doctor.host_idle(Examination(host=hosts.read(), show=lambda _: None))
    assert idle.policy == "warn"


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


def test_the_load_that_was_too_much_is_the_evidence() -> None:
    finding = client_finding(Ceiling(workers=1, steps=(step(1, 64), step(1, 256, "client"))))
    assert finding.evidence == "256 streams: client"


def test_several_workers_that_carry_no_more_are_no_unfit_machine() -> None:
    assert not client_finding(Ceiling(workers=8, steps=(step(8, 4096, "server"),))).invalidates
