"""The commit that is measured."""

from __future__ import annotations

import subprocess
from pathlib import Path

TIMEOUT_S = 5


def commit_at(folder: Path) -> str:
    """The commit that ``folder`` is at; ``unknown`` outside a repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() or "unknown"
