"""Folders of runs are found by their names, none is opened for it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pytest_llmperf.history import candidates, new_folder
from tests.unit.history.nights import NOW


def test_a_case_finds_its_candidates_the_newest_first(tmp_path: Path) -> None:
    old, new = (new_folder(tmp_path, "vllm/chat/c8", "candidate", NOW - timedelta(days=days)) for days in (2, 1))
    for role in ("warmup", "reference", "confirmation"):
        new_folder(tmp_path, "vllm/chat/c8", role, NOW)
    new_folder(tmp_path, "vllm/chat/c80", "candidate", NOW)
    new_folder(tmp_path, "my-vllm/chat/c8", "candidate", NOW)
    (tmp_path / "runs" / "notes").mkdir()
    assert list(candidates(tmp_path, "vllm/chat/c8")) == [new, old]


def test_what_is_too_old_is_left_out(tmp_path: Path) -> None:
    folder = new_folder(tmp_path, "a/b", "candidate", NOW)
    assert list(candidates(tmp_path, "a/b", since=NOW)) == [folder]
    assert not list(candidates(tmp_path, "a/b", since=NOW + timedelta(milliseconds=1)))


def test_what_began_later_is_left_out(tmp_path: Path) -> None:
    folder = new_folder(tmp_path, "a/b", "candidate", NOW)
    assert list(candidates(tmp_path, "a/b", until=NOW)) == [folder]
    assert not list(candidates(tmp_path, "a/b", until=NOW - timedelta(milliseconds=1)))


def test_where_nothing_was_saved_there_is_nothing(tmp_path: Path) -> None:
    assert not list(candidates(tmp_path / "nowhere", "a/b"))
