"""Where the lock files of leases lie: one folder per user and machine, outside every project."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def lease_folder() -> Path:
    """``/tmp/pytest-llmperf-UID`` (``TMPDIR``), made on first use. Sessions with another TMPDIR do not see each other.

    Raises:
        PermissionError: the folder exists and is not ours.
    """
    folder = Path(tempfile.gettempdir()) / f"pytest-llmperf-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to another user; set TMPDIR to a folder of your own")
    return folder
