"""The store: where files lie, what is read for a case, and that a file is never half."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_llmperf.baseline import Store, parse, reference, split
from pytest_llmperf.baseline.document import MAX_BYTES
from pytest_llmperf.checks.comparability import changed
from pytest_llmperf.errors import BaselineError
from tests.unit.baseline.examples import CALIBRATED, CALIBRATION, EXAMPLE, FACTS

MACHINE, SUITE = "8x-nvidia-h200", "deepseek-r1-h200"


def test_a_case_lies_under_hardware_and_suite(tmp_path: Path) -> None:
    store = Store(tmp_path / "baselines")
    path = store.path(MACHINE, SUITE, "vllm/random-4000-200")
    assert path == tmp_path / "baselines/8x-nvidia-h200/deepseek-r1-h200/vllm/random-4000-200.yaml"
    assert store.read(MACHINE, SUITE, EXAMPLE.case) is None
    store.write(path, EXAMPLE)
    assert store.read(MACHINE, SUITE, EXAMPLE.case) == EXAMPLE
    assert path.read_text().startswith(f"# baselines/{MACHINE}/{SUITE}/vllm/random-4000-200.yaml. ")


@pytest.mark.parametrize("case", ["../x", "a//b", "", "a/..", "./a"])
def test_no_name_leads_out_of_the_store(tmp_path: Path, case: str) -> None:
    with pytest.raises(BaselineError, match="not a place in the store"):
        Store(tmp_path).path(MACHINE, SUITE, case)


def test_a_file_renamed_by_hand_is_not_the_baseline_of_another_case(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(store.path(MACHINE, SUITE, "sglang/other"), EXAMPLE)
    with pytest.raises(
        BaselineError, match=r"other\.yaml: is the baseline of 'vllm/random-4000-200', not of 'sglang/oth"
    ):
        store.read(MACHINE, SUITE, "sglang/other")


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.path(MACHINE, SUITE, "a")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BaselineError, match=r"a\.yaml:1: is no text: byte 0 is no UTF-8"):
        store.read(MACHINE, SUITE, "a")
    path.unlink()
    path.mkdir()
    with pytest.raises(BaselineError, match=r"a\.yaml: cannot be read: Is a directory"):
        store.read(MACHINE, SUITE, "a")


@pytest.mark.parametrize("letter", ["#", "é"])
def test_of_a_file_that_is_too_large_no_more_is_read_than_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    store = Store(tmp_path)
    path = store.path(MACHINE, SUITE, EXAMPLE.case)
    store.write(path, EXAMPLE)
    path.write_text(path.read_text() + "#" + letter * MAX_BYTES)
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("all of it is read"))
    monkeypatch.setattr(Path, "read_bytes", lambda *_: pytest.fail("all of it is read"))
    with pytest.raises(BaselineError, match=r"random-4000-200\.yaml:1: is larger than 256 KiB"):
        store.read(MACHINE, SUITE, EXAMPLE.case)


def test_writing_replaces_the_whole_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.path(MACHINE, SUITE, EXAMPLE.case)
    store.write(path, EXAMPLE)
    less = replace(EXAMPLE, metrics={"mean_e2el_ms": EXAMPLE.metrics["mean_e2el_ms"]})
    store.write(path, less)
    assert store.read(MACHINE, SUITE, EXAMPLE.case) == less
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    path = store.path(MACHINE, SUITE, EXAMPLE.case)
    store.write(path, EXAMPLE)

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(BaselineError, match=r"cannot be written: .*No space left"):
        store.write(path, replace(EXAMPLE, environment={}))
    assert store.read(MACHINE, SUITE, EXAMPLE.case) == EXAMPLE
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_of_two_files_none_is_replaced_where_one_cannot_be_written(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (own,) = store.write_case(MACHINE, SUITE, EXAMPLE, any_hardware=False)
    before = own.read_text()
    (tmp_path / "any").write_text("")
    with pytest.raises(BaselineError, match=r"any/.*cannot be written"):
        store.write_case(MACHINE, SUITE, replace(EXAMPLE, environment={}), any_hardware=True)
    assert own.read_text() == before
    assert [each.name for each in own.parent.iterdir()] == [own.name]


def test_a_draft_of_a_killed_process_goes_with_the_next_writing_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.path(MACHINE, SUITE, EXAMPLE.case)
    path.parent.mkdir(parents=True)
    with subprocess.Popen(["true"]) as ended:
        pass
    names = [f".{path.name}.{pid}.tmp" for pid in (ended.pid, os.getppid(), "mine")]
    for name in names:
        (path.parent / name).write_text("half")
    store.write(path, EXAMPLE)
    assert {each.name for each in path.parent.iterdir()} == {path.name, *names[1:]}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file")
    with pytest.raises(BaselineError, match="cannot be written"):
        store.write(store.path(MACHINE, SUITE, "a"), EXAMPLE)


def test_counts_of_a_case_for_any_hardware_are_stored_apart_and_read_together(tmp_path: Path) -> None:
    store = Store(tmp_path)
    paths = store.write_case(MACHINE, SUITE, replace(EXAMPLE, machine={"ecc": "on"}), any_hardware=True)
    assert [path.relative_to(tmp_path).parts[0] for path in paths] == [MACHINE, "any"]
    counts = parse(paths[1].read_text(), "x")
    assert list(counts.metrics) == ["acceptance_length"]
    assert (counts.machine, parse(paths[0].read_text(), "x").machine) == ({}, {"ecc": "on"})
    assert counts.refuse_unless == {"hardware": "any", "weights": "real", "acceptance": "natural"}
    assert set(counts.environment) == {"engine", "engine_version", "args", "model"}

    found = store.read_case(MACHINE, SUITE, EXAMPLE.case, any_hardware=True)
    assert {name for each in found for name in each.metrics} == set(EXAMPLE.metrics)
    elsewhere = store.read_case("2x-cpu", SUITE, EXAMPLE.case, any_hardware=True)
    assert [list(each.metrics) for each in elsewhere] == [["acceptance_length"]]
    assert store.read_case("2x-cpu", SUITE, EXAMPLE.case, any_hardware=False) == []


def test_a_case_for_one_class_of_hardware_has_one_file(tmp_path: Path) -> None:
    assert split(EXAMPLE, MACHINE, any_hardware=False) == {MACHINE: EXAMPLE}
    counts = replace(EXAMPLE, metrics={"acceptance_length": EXAMPLE.metrics["acceptance_length"]})
    assert list(split(counts, MACHINE, any_hardware=True)) == ["any"]


def test_a_reference_has_the_metrics_that_are_comparable_and_says_why_others_are_not() -> None:
    parts = split(EXAMPLE, MACHINE, any_hardware=True).values()
    here = {**FACTS, "hardware": "2x-cpu", "engine_version": "0.11.1", "client_placement": "shared"}
    found = reference(parts, here)
    assert list(found.measurement.samples) == ["acceptance_length"]
    assert found.refused == dict.fromkeys(
        ("output_throughput", "mean_e2el_ms"),
        "the baseline is not comparable: hardware: baseline 8x-nvidia-h200, here 2x-cpu;"
        " client_placement: baseline pinned, here shared",
    )
    assert changed(found.environment, here) == {"engine_version": ("0.11.0", "0.11.1")}


def test_the_machines_own_baseline_comes_before_that_of_any_hardware() -> None:
    counts = split(EXAMPLE, MACHINE, any_hardware=True)["any"]
    own = replace(EXAMPLE, metrics={"acceptance_length": ((2.0,), (2.0,), (2.0,))})
    assert reference([own, counts], FACTS).measurement.of("acceptance_length")[0].value == 2.0
    refused = reference([own, counts], {**FACTS, "hardware": "2x-cpu"})
    assert refused.measurement.of("acceptance_length")[0].value == 1.70125
    assert refused.refused == {}


def test_goodput_of_other_limits_is_refused_and_the_rest_is_not() -> None:
    stored = replace(
        EXAMPLE,
        environment={**EXAMPLE.environment, "slo": "ttft 500 ms"},
        metrics=dict.fromkeys(("output_throughput", "slo_attainment"), EXAMPLE.metrics["output_throughput"]),
    )
    same, other = reference([stored], {**FACTS, "slo": "ttft 500 ms"}), reference([stored], FACTS)
    assert (set(same.measurement.samples), same.refused) == ({"output_throughput", "slo_attainment"}, {})
    assert set(other.measurement.samples) == {"output_throughput"}
    assert other.refused["slo_attainment"] == "the baseline is not comparable: slo: baseline ttft 500 ms, here none"


def test_a_calibration_goes_where_its_metrics_are(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_case(MACHINE, SUITE, EXAMPLE, any_hardware=True)
    files = store.calibrated(MACHINE, SUITE, EXAMPLE.case, CALIBRATION)
    for path, each in files.items():
        store.write(path, each)
    times, counts = store.read_case(MACHINE, SUITE, EXAMPLE.case, any_hardware=True)
    assert times.calibration is not None
    assert counts.calibration is not None
    assert [each.metric for each in times.calibration.noise] == ["mean_e2el_ms", "output_throughput"]
    assert [each.metric for each in counts.calibration.noise] == ["acceptance_length"]
    only_counts = CALIBRATION.only({"acceptance_length"})
    assert only_counts is not None
    assert [
        path.relative_to(tmp_path).parts[0] for path in store.calibrated(MACHINE, SUITE, EXAMPLE.case, only_counts)
    ] == ["any"]


def test_writing_keeps_the_calibration_that_a_file_has(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write_case(MACHINE, SUITE, CALIBRATED, any_hardware=False)
    less = replace(EXAMPLE, metrics={"mean_e2el_ms": EXAMPLE.metrics["mean_e2el_ms"]})
    (text,) = store.texts_of(MACHINE, SUITE, less, any_hardware=False).values()
    (path,) = store.write_case(MACHINE, SUITE, less, any_hardware=False)
    assert path.read_text() == text
    assert parse(text, "x").calibration == CALIBRATION.only({"mean_e2el_ms"})
    own = replace(EXAMPLE, calibration=replace(CALIBRATION, commit="newer"))
    store.write_case(MACHINE, SUITE, own, any_hardware=False)
    assert store.read(MACHINE, SUITE, EXAMPLE.case) == own


@pytest.mark.parametrize("broken", [False, True])
def test_noise_of_another_load_or_in_a_broken_file_is_not_kept(tmp_path: Path, broken: bool) -> None:
    store = Store(tmp_path)
    (path,) = store.write_case(MACHINE, SUITE, replace(CALIBRATED, workload="sha256:other"), any_hardware=False)
    if broken:
        path.write_text(path.read_text().replace("kind: measured", "kind: guessed"))
    store.write_case(MACHINE, SUITE, EXAMPLE, any_hardware=False)
    assert store.read(MACHINE, SUITE, EXAMPLE.case) == EXAMPLE


def test_a_reference_says_how_each_of_its_metrics_was_calibrated(tmp_path: Path) -> None:
    times, counts = split(CALIBRATED, MACHINE, any_hardware=True).values()
    found = reference([times, counts], FACTS)
    assert found.calibrations.keys() == set(EXAMPLE.metrics)
    assert found.calibrations["mean_e2el_ms"].of("mean_e2el_ms") == CALIBRATION.of("mean_e2el_ms")
    assert list(reference([times, counts], {**FACTS, "hardware": "2x-cpu"}).calibrations) == ["acceptance_length"]
    own = replace(EXAMPLE, metrics={"acceptance_length": EXAMPLE.metrics["acceptance_length"]})
    assert "acceptance_length" not in reference([own, counts], FACTS).calibrations, (
        "the values of one file, the noise of another"
    )
