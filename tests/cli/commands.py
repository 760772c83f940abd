"""The command ``llmperf``, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def llmperf(*args: str, cwd: Path, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest_llmperf.cli", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout_s, check=False)
