"""A file of the kernel as a reading: not there is unsupported, may not be read is not permitted, odd is unknown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pytest_llmperf.model.reading import Answer, Reading, lacking

T = TypeVar("T")


def parsed(path: Path, parse: Callable[[str], T]) -> Reading[T]:
    """What ``parse`` makes of the file; it raises ValueError, IndexError or KeyError where it does not understand."""
    try:
        text = path.read_text(errors="replace").strip()
    except PermissionError:
        return lacking(Answer.NOT_PERMITTED, f"{path}: permission denied")
    except OSError as error:
        return lacking(Answer.UNSUPPORTED, f"{path}: {error.strerror}")
    try:
        return Reading(parse(text), evidence=str(path))
    except (ValueError, IndexError, KeyError):
        return lacking(Answer.UNKNOWN, f"{path}: {text[:200]!r}")


def listed(folder: Path) -> Reading[list[Path]]:
    """What a folder holds, sorted."""
    try:
        return Reading(sorted(folder.iterdir()), evidence=str(folder))
    except PermissionError:
        return lacking(Answer.NOT_PERMITTED, f"{folder}: permission denied")
    except OSError as error:
        return lacking(Answer.UNSUPPORTED, f"{folder}: {error.strerror}")
