"""The two programs in C: compiled when they are needed, or taken ready-made where there is no compiler."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCES = Path(__file__).parent
BUILD = SOURCES.parents[1] / "build" / "benchmarks"


def program(name: str, ready_made: Path | None = None) -> Path:
    """The program of ``NAME.c``: in the folder ``ready_made``, or compiled with ``cc``, statically linked."""
    if ready_made is not None:
        return ready_made / name
    source, binary = SOURCES / f"{name}.c", BUILD / name
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(parents=True, exist_ok=True)
        command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", str(source), "-o", str(binary)]
        subprocess.run(command, check=True)
    return binary
