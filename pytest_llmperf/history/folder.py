"""The folder of a saved run: its name says when and of which case it is, so that few are opened to find some."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from pytest_llmperf.model.run import Role

RUN, RECORDS = "run.json", "records.npz"

AHEAD = timedelta(minutes=10)
"""How far the clocks of two machines may be apart: a run that began later than that after now tells no time."""


def new_folder(root: Path, case: str, role: Role, now: datetime) -> Path:
    """A folder for one run, made here; its name sorts by time and is unique across processes."""
    folder = root / "runs" / f"{_stamp(now)}-{_label(case)}-{role}-{secrets.token_hex(3)}"
    folder.mkdir(parents=True)
    return folder


def candidates(
    root: Path, case: str, *, since: datetime | None = None, until: datetime | None = None
) -> Iterator[Path]:
    """The folders of a case's candidate runs, the newest first, by their names alone; none where nothing was saved.

    Another case may have the same name in another suite, and the same label here (``a/b`` and ``a-b``): ``run.json``
    says which it is.

    Args:
        root: of ``--llmperf-save``.
        case: id.
        since: those that began before are left out.
        until: those that began after are left out.
    """
    runs, label = root / "runs", _label(case)
    first, last = "" if since is None else _stamp(since), "~" if until is None else f"{_stamp(until)}~"
    name = re.compile(rf"\d{{8}}T\d{{6}}\.\d{{3}}-{re.escape(label)}-candidate-[0-9a-f]+")
    try:
        with os.scandir(runs) as entries:
            names = [each.name for each in entries if first <= each.name <= last and label in each.name]
            found = sorted(names, reverse=True)
    except OSError:  # nobody has saved a run here
        return
    yield from (runs / each for each in found if name.fullmatch(each))


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y%m%dT%H%M%S}.{moment.microsecond // 1000:03d}"


def _label(case: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", case)
