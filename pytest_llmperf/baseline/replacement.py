"""Replacement of files: all of them or none, and never half of one."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Mapping
from pathlib import Path

from pytest_llmperf.errors import BaselineError


def replace_all(texts: Mapping[Path, str]) -> None:
    """Give each file its text, by drafts beside them; none is replaced before all drafts are written.

    Raises:
        BaselineError: one of them cannot be written.
    """
    drafts = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in texts}
    try:
        for path, draft in drafts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            for abandoned in _abandoned(path):
                abandoned.unlink(missing_ok=True)
            draft.write_text(texts[path], encoding="utf-8")
        for path, draft in drafts.items():
            draft.replace(path)
    except OSError as error:
        for draft in drafts.values():
            with contextlib.suppress(OSError):
                draft.unlink()
        raise BaselineError(f"{path}: cannot be written: {error}") from error


def _abandoned(path: Path) -> list[Path]:
    """Drafts of a file whose process was killed before it could rename or remove them."""
    drafts = path.parent.glob(f".{glob.escape(path.name)}.*.tmp")
    named = ((draft, re.fullmatch(r"\.(\d{1,9})\.tmp", draft.name.removeprefix(f".{path.name}"))) for draft in drafts)
    return [draft for draft, found in named if found and not _lives(int(found[1]))]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user
        return True
    return True
