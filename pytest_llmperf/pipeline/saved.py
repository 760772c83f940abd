"""Saved runs, read back whole: the inverse of ``pipeline.archive.save``."""

from __future__ import annotations

from pathlib import Path

from pytest_llmperf import load
from pytest_llmperf.errors import SavedRunError, UsageError, shown
from pytest_llmperf.history import RECORDS, RUN, read_facts
from pytest_llmperf.model.saved_run import SavedRun


def find_runs(path: Path) -> list[Path]:
    """The folders of the runs at ``path``, in order of time: itself, or those of a ``.llmperf`` or of its ``runs``.

    Raises:
        UsageError: there are none, or one may not look.
    """
    try:
        found = _found(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if not found:
        raise UsageError(f"{path}: no saved run here; name a folder of .llmperf/runs, or a .llmperf")
    return found


def read_run(folder: Path) -> SavedRun:
    """The run that ``archive.save`` and the load client left in ``folder``.

    Raises:
        SavedRunError: a file is missing, damaged, of a newer format, or somebody else's.
    """
    told, columns = read_facts(folder), folder / RECORDS
    if columns.exists() and not columns.is_file():  # whoever reads a pipe waits for its writer
        raise SavedRunError(f"{shown(columns)}: is no file")
    try:
        return told.with_records(load.read_records(columns))
    except FileNotFoundError:
        raise SavedRunError(f"{shown(folder / RECORDS)}: is missing: the run's raw stamps are gone") from None
    except (OSError, ValueError) as error:
        raise SavedRunError(f"{shown(folder / RECORDS)}: {_said(error, folder / RECORDS)}") from None


def _said(error: Exception, file: Path) -> str:
    """What an error says beside the name of the file."""
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return str(error).removeprefix(f"{file}: ")


def _found(path: Path) -> list[Path]:
    if path.name == RUN and path.is_file():
        return [path.parent]
    if _is_run(path):
        return [path]
    if (path / "runs").is_dir():  # which has nothing else in it: a run that was killed is one of them
        return sorted(entry for entry in (path / "runs").iterdir() if entry.is_dir())
    return sorted(entry for entry in path.iterdir() if _is_run(entry)) if path.is_dir() else []


def _is_run(folder: Path) -> bool:
    return (folder / RUN).is_file() or (folder / RECORDS).is_file()
