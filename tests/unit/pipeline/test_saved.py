"""What is saved is read back; what cannot be read says which file and why."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_llmperf.errors import SavedRunError, UsageError
from pytest_llmperf.load.records_file import write_records
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.prefix_hits import PrefixHits
from pytest_llmperf.model.records import Records
from pytest_llmperf.model.run import Acceptance, ClientFacts, Run
from pytest_llmperf.model.slo import Slo
from pytest_llmperf.pipeline import archive
from pytest_llmperf.pipeline.saved import find_runs, read_run
from tests.unit.pipeline import saved_example

TEXTS = st.text(max_size=8)
COUNTS = st.integers(0, 2**53)
NUMBERS = st.floats(0, 1e9)
RUNS: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    suite=TEXTS,
    role=st.sampled_from(["candidate", "reference", "warmup", "confirmation"]),
    order=COUNTS,
    seed=COUNTS,
    window_ns=st.tuples(COUNTS, COUNTS),
    client=st.builds(
        ClientFacts, workers=COUNTS, lag_mean_ms=NUMBERS, lag_p50_ms=NUMBERS, lag_p99_ms=NUMBERS, lag_max_ms=NUMBERS,
        cpu_share=NUMBERS, schedule_lag_p99_ms=st.none() | NUMBERS, max_in_flight=COUNTS,
    ),
    acceptance=st.none()
    | st.builds(
        Acceptance, steps=COUNTS, accepted=COUNTS, drafted=COUNTS, per_position=st.lists(COUNTS).map(tuple),
        synthetic=st.booleans(),
    ),
    prefix_hits=st.none() | st.builds(PrefixHits, looked_up=COUNTS, found=COUNTS),
    environment=st.dictionaries(TEXTS, TEXTS),
    findings=st.lists(
        st.builds(
            Finding, check=TEXTS, status=st.sampled_from(Status), policy=st.sampled_from(["require", "warn"]),
            value=TEXTS, metrics=st.none() | st.frozensets(TEXTS),
        )
    ).map(tuple),
)  # fmt: skip
SLOS = st.none() | st.builds(Slo, ttft_s=st.none() | NUMBERS, tpot_s=st.none() | NUMBERS, e2el_s=NUMBERS)


def same(run: Run, other: Run) -> bool:
    for field in fields(Records):
        ours, theirs = getattr(run.records, field.name), getattr(other.records, field.name)
        np.testing.assert_array_equal(ours, theirs, strict=True)
    return replace(run, records=other.records) == other


@given(facts=RUNS, slo=SLOS, gpus=st.integers(0, 8), values=st.dictionaries(st.just("mean_ttft_ms"), NUMBERS))
@settings(max_examples=50, deadline=None)
def test_a_saved_run_is_read_back(facts: dict[str, Any], slo: Slo | None, gpus: int, values: dict[str, float]) -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        run = saved_example.example(folder, **facts)
        write_records(run.records, folder / "records.npz")
        archive.save(folder, run, values, saved_example.case(folder, slo, gpus), log=b"")
        again = read_run(folder)
    assert same(run, again.run)
    assert (again.values, again.slo, again.gpus) == (values, slo, gpus)
    assert again.totals == archive.totals(run)
    assert again.workload.startswith("sha256:")
    assert again.asked["workload"]["kind"] == "words"


def test_a_metric_that_is_no_longer_known_is_read_too(tmp_path: Path) -> None:
    folder = saved_example.saved(tmp_path)
    change(folder, lambda data: data.update(old_metric=1.5) or data["llmperf"]["metrics"].append("old_metric"))
    assert read_run(folder).values["old_metric"] == 1.5


def test_a_run_of_the_format_before_is_read_and_says_what_it_lacks(tmp_path: Path) -> None:
    folder = saved_example.saved(tmp_path)
    change(folder, lambda data: [data["llmperf"].pop(key) for key in ("format", "version", "slo", "gpus", "metrics")])
    again = read_run(folder)
    assert (again.slo, again.gpus, again.version) == (None, None, "")
    assert "request_goodput" in again.values


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    file = folder / "run.json"
    data = json.loads(file.read_text())
    edit(data)
    file.write_text(json.dumps(data))


def cut(name: str, keep: int) -> Callable[[Path], object]:
    return lambda folder: os.truncate(folder / name, keep)


def flip(folder: Path) -> None:
    file = folder / "records.npz"
    raw = bytearray(file.read_bytes())
    raw[raw.index(b"sent_ns.npy") + 150] ^= 1
    file.write_bytes(raw)


def no_run_json(folder: Path) -> None:
    (folder / "run.json").unlink()


def no_records(folder: Path) -> None:
    (folder / "records.npz").unlink()


def other_records(folder: Path) -> None:
    np.savez(folder / "records.npz", a=np.zeros(1))


def pipe(name: str) -> Callable[[Path], object]:
    def replaced(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return replaced


def rewritten(text: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / "run.json").write_bytes(text)


def changed(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    return lambda folder: change(folder, edit)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "run.json: is missing: the run still goes on, or was killed; its stamps are in records.npz": no_run_json,
    "run.json: damaged: no JSON: Expecting": cut("run.json", 100),
    "run.json: damaged: no JSON: 'utf": rewritten(b"\x80abc"),
    "run.json: has no part 'llmperf': another tool wrote it": rewritten(b'{"date": "x"}'),
    "run.json: has no part 'llmperf': another": rewritten(b"[]"),
    "run.json: format 2, written by pytest-llmperf 9.1; this one reads up to 1: update it": changed(
        lambda data: data["llmperf"].update(format=2, version="9.1", client="new")
    ),
    "run.json: damaged: llmperf.client.workers: field required": changed(
        lambda data: data["llmperf"]["client"].pop("workers")
    ),
    "run.json: damaged: llmperf.role: input should be 'candidate', 'reference', 'warmup', 'confirmation' or": (
        changed(lambda data: data["llmperf"].update(role="umpire", order="x"))
    ),
    "run.json: damaged: a metric has no value ('mean_ttft_ms')": changed(lambda data: data.pop("mean_ttft_ms")),
    "run.json: damaged: a metric has no value (int too large": changed(lambda data: data.update(mean_ttft_ms=10**400)),
    "run.json: damaged: mean_ttft_ms is nan": changed(lambda data: data.update(mean_ttft_ms=float("nan"))),
    "run.json: damaged: mean_ttft_ms is -inf": changed(lambda data: data.update(mean_ttft_ms=float("-inf"))),
    "run.json: damaged: num_prompts: input should be less than": changed(lambda data: data.update(num_prompts=10**400)),
    "run.json: damaged: date: value error, invalid isoformat string: 'yest": changed(
        lambda data: data.update(date="yesterday")
    ),
    "run.json: is no file": pipe("run.json"),
    "records.npz: is no file": pipe("records.npz"),
    "records.npz: is missing": no_records,
    "records.npz: damaged, or no file of records: File is not": cut("records.npz", 700),
    "records.npz: damaged, or no file of records: No data": cut("records.npz", 0),
    "records.npz: damaged, or no file of records: Bad CRC-32": flip,
    "records.npz: no column 'output_tokens'": other_records,
}


@pytest.mark.parametrize(("says", "damage"), DAMAGE.items(), ids=DAMAGE)
def test_a_damaged_folder_names_the_file_and_what_is_wrong(
    says: str, damage: Callable[[Path], object], tmp_path: Path
) -> None:
    folder = saved_example.saved(tmp_path)
    damage(folder)
    with pytest.raises(SavedRunError) as caught:
        read_run(folder)
    assert str(folder) in str(caught.value)
    assert says in str(caught.value)


def test_runs_are_found_wherever_one_points(tmp_path: Path) -> None:
    first, second = (saved_example.saved(tmp_path, name) for name in ("a", "b"))
    half = tmp_path / "runs" / "c"
    half.mkdir()
    for pointed in (tmp_path, tmp_path / "runs"):
        assert find_runs(pointed)[:2] == [first, second]
    assert half in find_runs(tmp_path)  # a run that was killed is not passed over in silence
    assert find_runs(first) == find_runs(first / "run.json") == [first]
    (first / "run.json").unlink()
    assert find_runs(first) == [first]


def test_a_folder_that_may_not_be_looked_into_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(UsageError, match="cannot be read: Permission denied"):
        find_runs(tmp_path)


@pytest.mark.parametrize("name", ["", "nowhere", "some.txt"])
def test_where_there_are_none_is_said(name: str, tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("")
    (tmp_path / "other").mkdir()
    with pytest.raises(UsageError, match="no saved run here"):
        find_runs(tmp_path / name)
