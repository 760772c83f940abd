"""What an audit finds, each alone, and that it finds nothing where all is in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.baseline import Accepted, Baseline, Store
from pytest_llmperf.baseline.noise import rounded
from pytest_llmperf.judge import calibrate
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.calibration import Calibration
from pytest_llmperf.model.case import workload_digest
from pytest_llmperf.model.concern import Concern, Kind
from pytest_llmperf.model.quarantine import Quarantine
from pytest_llmperf.model.saved_run import SavedFacts
from pytest_llmperf.model.suite import Hardware, Suite
from pytest_llmperf.pipeline.audit import Scope, audit
from pytest_llmperf.pipeline.hardware import slug_here
from pytest_llmperf.pipeline.saved_cases import SavedCase
from pytest_llmperf.suitefile import expand, load_suite
from tests.unit.pipeline import saved_example

MACHINE, TODAY = "2x-cpu", date(2026, 11, 30)
TEXT = """\
suite: chat
why: Baselines that are looked after.
model: {id: m}
engines:
  good: {engine: embedded}
  slow: {extends: good, variant_of: good, default: false}
  rare: {engine: embedded, default: false}
workloads:
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 16, concurrency: 4}
gates:
  output_throughput: {margin: 5%}
  mean_e2el_ms: {margin: 5%}
  acceptance_length: {margin: 0.03, cv: 0}
"""
TEN = tuple((100.0 + 0.1 * (session % 3), 100.0 + 0.1 * (session % 2)) for session in range(10))


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    path = tmp_path / "chat.llmperf.yaml"
    path.write_text(TEXT)
    return load_suite(path, overrides={}, environ={})


@pytest.fixture
def store(tmp_path: Path, suite: Suite) -> Store:
    """A baseline of ten sessions, calibrated, accepted yesterday."""
    store = Store(tmp_path / "baselines")
    store.write_case(MACHINE, "chat", stored(suite), any_hardware=True)
    return store


def stored(suite: Suite, **changes: Any) -> Baseline:
    (case,) = expand(suite)
    usual: dict[str, Any] = {
        "case": "good/short",
        "workload": workload_digest(case.workload, case.load),
        "refuse_unless": {"acceptance": "natural", "client": "llmperf", "client_placement": "shared",
                          "hardware": MACHINE, "weights": "real"},
        "environment": {},
        "accepted": Accepted(on=TODAY - timedelta(1), commit="4e0a037", why="x"),
        "sessions": tuple(f"s{number}" for number in range(10)),
        "metrics": {"output_throughput": TEN, "mean_e2el_ms": TEN, "acceptance_length": ((2.0, 2.0),) * 10},
    }  # fmt: skip
    found = Baseline(**{**usual, **changes})
    return replace(found, calibration=noise(found)) if "calibration" not in changes else found


def noise(baseline: Baseline) -> Calibration | None:
    if len(baseline.sessions) < 2:
        return None
    return rounded(calibrate(baseline.measurement(), [METRICS[name] for name in baseline.metrics]))


def looked(suite: Suite, store: Store, saved: Sequence[SavedCase] = (), **changes: Any) -> list[Concern]:
    usual: dict[str, Any] = {"suites": [suite], "hardware": lambda _: [MACHINE], "whole": True}
    return audit(Scope(**{**usual, **changes}), store.entries(), saved, today=TODAY)


def one(suite: Suite, store: Store, saved: Sequence[SavedCase] = (), **changes: Any) -> Concern:
    (concern,) = looked(suite, store, saved, **changes)
    return concern


def test_where_all_is_in_order_nothing_is_found(suite: Suite, store: Store) -> None:
    assert looked(suite, store) == []


def test_a_gate_without_a_baseline_is_named_with_the_hardware_that_has_one(suite: Suite, store: Store) -> None:
    concern = one(suite, store, hardware=lambda _: ["8x-gpu"])
    assert (concern.kind, concern.case, concern.metrics) == (
        Kind.MISSING, "good/short", ("output_throughput", "mean_e2el_ms"),
    )  # fmt: skip
    assert concern.place.endswith("chat.llmperf.yaml:11")
    assert concern.what == "no baseline on 8x-gpu; there is one on 2x-cpu, any"
    assert "--llmperf-accept=missing" in concern.remedy


def test_a_file_that_lacks_a_gated_metric(suite: Suite, store: Store) -> None:
    store.write_case(MACHINE, "chat", stored(suite, metrics={"output_throughput": TEN}), any_hardware=True)
    concern = one(suite, store)
    assert (concern.kind, concern.metrics) == (Kind.MISSING, ("mean_e2el_ms",))
    assert concern.what == "the baseline on 2x-cpu lacks it"
    assert "--llmperf-accept=all" in concern.remedy


@pytest.mark.parametrize("value", ["0", "TODO"])
def test_a_zero_or_a_placeholder_is_a_broken_file(suite: Suite, store: Store, value: str) -> None:
    path = store.path(MACHINE, "chat", "good/short")
    path.write_text(path.read_text().replace("[[100", f"[[{value}", 1))
    concern = one(suite, store)
    assert (concern.kind, concern.case) == (Kind.BROKEN, "good/short")
    assert f"mean_e2el_ms: '{value}' cannot be a value" in concern.what


def test_a_baseline_of_another_workload_or_weights_is_refused_tonight(suite: Suite, store: Store) -> None:
    other = stored(suite, workload="sha256:other", calibration=None)
    store.write_case(MACHINE, "chat", other, any_hardware=True)
    assert [each.kind for each in looked(suite, store)] == [Kind.REFUSED, Kind.REFUSED]
    facts = {**stored(suite).refuse_unless, "weights": "dummy"}
    store.write_case(MACHINE, "chat", stored(suite, refuse_unless=facts), any_hardware=True)
    assert looked(suite, store)[0].what == "weights were dummy, and are real: NO BASELINE for what the suite asks now"


def test_an_old_baseline_is_stale_from_the_day_after_its_time(suite: Suite, store: Store) -> None:
    def age(days: int) -> list[Concern]:
        accepted = Accepted(on=TODAY - timedelta(days), commit="4e0a037", why="x")
        store.write_case(MACHINE, "chat", stored(suite, accepted=accepted), any_hardware=True)
        return looked(suite, store)

    assert age(90) == []
    times, counts = age(91)
    assert (times.kind, counts.kind) == (Kind.STALE, Kind.STALE)
    assert times.what == "accepted on 2026-08-31, 91 days ago"


@pytest.mark.parametrize(("day", "kinds"), [(TODAY + timedelta(1), []), (date.max, [Kind.BROKEN, Kind.BROKEN])])
def test_a_baseline_of_a_day_to_come_cannot_be_true(suite: Suite, store: Store, day: date, kinds: list[Kind]) -> None:
    accepted = Accepted(on=day, commit="4e0a037", why="x")
    store.write_case(MACHINE, "chat", stored(suite, accepted=accepted), any_hardware=True)
    found = looked(suite, store)
    assert [each.kind for each in found] == kinds
    assert all(each.what == "accepted on 9999-12-31, a day that has not come" for each in found)
    assert all(each.remedy.startswith("write the right day, or accept a new one") for each in found)


@pytest.mark.parametrize(
    ("cases", "until", "what"),
    [
        ("good/*", TODAY, None),
        ("good/*", TODAY - timedelta(1), "expired on 2026-11-29: flaky node"),
        ("god/*", TODAY, "no case of the suite is called so"),
        ("good/*", TODAY + timedelta(90), None),
        ("good/*", TODAY + timedelta(91), "ends on 2027-03-01, in 91 days: flaky node"),
        ("good/*", date.max, "ends on 9999-12-31, in 2912109 days: flaky node"),
    ],
)
def test_a_quarantine_that_is_over_or_never_ends(
    suite: Suite, store: Store, cases: str, until: date, what: str | None
) -> None:
    entry = Quarantine(cases=cases, owner="ada", why="flaky node", until=until, line=7)
    found = looked(replace(suite, quarantine=(entry,)), store)
    assert [each.what for each in found] == ([] if what is None else [what])
    assert all(each.kind is Kind.QUARANTINE and each.place.endswith("chat.llmperf.yaml:7") for each in found)


def test_a_gate_that_cannot_see_its_margin(suite: Suite, store: Store) -> None:
    wild = tuple((100.0 * (1 + 0.04 * (-1) ** session),) * 2 for session in range(10))
    metrics = {**stored(suite).metrics, "mean_e2el_ms": wild}
    store.write_case(MACHINE, "chat", stored(suite, metrics=metrics), any_hardware=True)
    concern = one(suite, store)
    assert (concern.kind, concern.metrics) == (Kind.UNDERPOWERED, ("mean_e2el_ms",))
    assert concern.what.endswith(" %, the margin 5 %")
    assert concern.remedy == "a margin of 20 % or longer runs"


def test_a_small_baseline_is_named_as_the_reason(suite: Suite, store: Store) -> None:
    one_session: dict[str, Any] = {
        "sessions": ("s",),
        "calibration": None,
        "metrics": {"output_throughput": ((100.0,),), "mean_e2el_ms": ((100.0,),), "acceptance_length": ((2.0,),)},
    }
    for path in store.root.rglob("*.yaml"):
        path.unlink()
    store.write_case(MACHINE, "chat", stored(suite, **one_session), any_hardware=True)
    found = [each for each in looked(suite, store) if each.kind is Kind.UNDERPOWERED]
    assert [each.metrics for each in found] == [("mean_e2el_ms",)]
    assert "a baseline of 10 sessions (it has 1)" in found[0].remedy


def test_a_gate_whose_noise_nobody_measured(suite: Suite, store: Store) -> None:
    for path in store.root.rglob("*.yaml"):
        path.unlink()
    store.write_case(MACHINE, "chat", stored(suite, calibration=None), any_hardware=True)
    concern = one(suite, store)
    assert (concern.kind, concern.metrics) == (Kind.UNCALIBRATED, ("output_throughput", "mean_e2el_ms"))


def auto(suite: Suite) -> Suite:
    gates = tuple(replace(gate, auto=gate.metric.name == "mean_e2el_ms") for gate in suite.gates)
    return replace(suite, gates=gates)


def test_margin_auto_takes_what_the_calibration_says_and_is_named_without_one(suite: Suite, store: Store) -> None:
    assert looked(auto(suite), store) == []
    for path in store.root.rglob("*.yaml"):
        path.unlink()
    throughput = noise(stored(suite, calibration=None, metrics={"output_throughput": TEN}))
    store.write_case(MACHINE, "chat", stored(suite, calibration=throughput), any_hardware=True)
    concern = one(auto(suite), store)
    assert (concern.kind, concern.metrics) == (Kind.UNCALIBRATED, ("mean_e2el_ms",))
    assert concern.remedy.startswith("llmperf calibrate --store")
    for path in store.root.rglob("*.yaml"):
        path.unlink()
    wild = {**stored(suite).metrics, "mean_e2el_ms": tuple((value,) * 2 for value in (50.0, 200.0) * 5)}
    store.write_case(
        MACHINE, "chat", stored(suite, metrics=wild, calibration=noise(stored(suite, metrics=wild, calibration=None))),
        any_hardware=True,
    )  # fmt: skip
    concern = one(auto(suite), store)
    assert (concern.kind, concern.metrics) == (Kind.UNGATED, ("mean_e2el_ms",))
    assert concern.what == "margin: auto, and even the largest could not be seen: nothing is judged"


def test_a_published_number_that_has_expired(suite: Suite, store: Store) -> None:
    path = store.published_path(MACHINE, "chat", "good/short")
    text = (
        "kind: published\ncase: good/short\nsource: {document: d}\n"
        "conditions: {hardware: h, versions: v, load: l}\nexpires: 2026-12-01\n"
        "metrics: {output_throughput: {value: 1, definition: unknown}}\n"
    )
    path.write_text(text)
    assert looked(suite, store) == []
    path.write_text(text.replace("2026-12-01", "2026-11-30"))
    concern = one(suite, store)
    assert (concern.kind, concern.metrics) == (Kind.PUBLISHED, ("output_throughput",))


def test_a_file_that_no_case_has(suite: Suite, store: Store) -> None:
    store.write_case(MACHINE, "chat", stored(suite, case="rare/short"), any_hardware=False)
    assert looked(suite, store) == [], "an arm that runs only when named has cases, too"
    gone, lost = store.path(MACHINE, "chat", "gone/short"), store.root / "notes.yaml"
    gone.parent.mkdir(parents=True)
    other = store.path(MACHINE, "other", "good/short")
    other.parent.mkdir(parents=True)
    for path, case in ((gone, "gone/short"), (lost, "good/short"), (other, "good/short")):
        path.write_text(store.text(path, stored(suite, case=case)))
    found = looked(suite, store)
    assert {each.kind for each in found} == {Kind.ORPHAN}
    assert [Path(each.place).name for each in found] == ["short.yaml", "short.yaml", "notes.yaml"]
    assert [each.case for each in looked(suite, store, whole=False)] == ["gone/short"]


def night(suite: Suite, day: date, values: Mapping[str, float], order: int = 0, session: str = "") -> SavedFacts:
    run = saved_example.example(
        Path(f"{day}-{order}"), suite="chat", case="good/short", arm="good", session=session or f"{day}", order=order,
        started=f"{day}T02:00:00.000+00:00", findings=(),
        environment={**stored(suite, calibration=None).facts},
    )  # fmt: skip
    return SavedFacts(
        run=run, values=values, totals={}, slo=None, failures=None, gpus=0, workload="", asked={}, version=""
    )


def week(suite: Suite, speeds: Sequence[float], first: date = TODAY) -> list[SavedCase]:
    """One run a night; the throughput of each, E2EL as it was."""
    runs = [
        night(suite, first + timedelta(place), {"output_throughput": speed, "mean_e2el_ms": 100.0})
        for place, speed in enumerate(speeds)
    ]
    return [SavedCase("chat", "good/short", "good", runs)]


def test_a_gain_that_nobody_accepted_for_seven_nights(suite: Suite, store: Store) -> None:
    concern = one(suite, store, week(suite, [120.0] * 7))
    assert (concern.kind, concern.case, concern.metrics) == (Kind.IMPROVED, "good/short", ("output_throughput",))
    assert "IMPROVED in each of the latest 7 nights, by 19.9 % on average" in concern.what
    assert concern.remedy.startswith("llmperf baseline accept --case good/short")


@pytest.mark.parametrize(
    "speeds", [[120.0] * 6, [*[120.0] * 6, 100.0], [*[120.0] * 7, 100.0, 120.0], [80.0] * 7, [100.0] * 8]
)
def test_a_gain_that_is_none_or_does_not_last(suite: Suite, store: Store, speeds: list[float]) -> None:
    assert looked(suite, store, week(suite, speeds)) == []


def test_only_nights_after_the_acceptance_count(suite: Suite, store: Store) -> None:
    assert looked(suite, store, week(suite, [120.0] * 7, TODAY - timedelta(1))) == []
    assert one(suite, store, week(suite, [80.0, *[120.0] * 7], TODAY - timedelta(1))).kind is Kind.IMPROVED


def test_sessions_of_one_night_are_one_night(suite: Suite, store: Store) -> None:
    runs = [
        night(suite, TODAY, {"output_throughput": 120.0, "mean_e2el_ms": 100.0}, session=f"s{number}")
        for number in range(9)
    ]
    assert looked(suite, store, [SavedCase("chat", "good/short", "good", runs)]) == []


def test_runs_of_other_hardware_or_arms_say_nothing(suite: Suite, store: Store) -> None:
    (case,) = week(suite, [120.0] * 7)
    assert looked(suite, store, [replace(case, arm="slow")]) == []
    elsewhere = [
        replace(each, run=replace(each.run, environment={**each.run.environment, "hardware": "8x-gpu"}))
        for each in case.runs
    ]
    assert looked(suite, store, [replace(case, runs=elsewhere)]) == []


def test_the_hardware_of_a_case_is_where_its_engine_runs(suite: Suite) -> None:
    (case,) = expand(suite)
    assert slug_here(case, ("NVIDIA H200",) * 2) == "2x-nvidia-h200"
    needing = replace(case, suite=replace(suite, hardware=Hardware(gpu="H200", count=2)))
    assert slug_here(needing, ("NVIDIA H200",) * 8) == "2x-nvidia-h200"
    assert slug_here(needing, ("NVIDIA H200",)) is None
    assert slug_here(needing, ("NVIDIA B200",) * 8) is None
    external = replace(case.arm, engine="external", options={"url": "http://gpu-box:8000"})
    assert slug_here(replace(needing, arm=external), ()) == "at-gpu-box"
