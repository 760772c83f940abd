"""NVML for tests: the real pynvml over a small C library that answers from a text file (see libnvidia-ml.c)."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pynvml
import pytest

SOURCE = Path(__file__).parent / "libnvidia-ml.c"
BUILD = Path(__file__).parents[2] / "build" / "nvml_shim"
H200 = (Path(__file__).parents[1] / "data" / "gpu" / "h200.nvml").read_text(encoding="utf-8")
"""What an H200 answered, in the words of the shim; GPU 0 of a machine with one."""


@dataclass(frozen=True)
class Shim:
    """The library in this process, and the file that it answers from."""

    library: Path
    facts: Path

    def say(self, *lines: str, gpus: int = 1, base: str = H200) -> None:
        """Answer like ``base`` on every GPU, but for these lines, which come first and so win."""
        own = [f"{index}.UUID GPU-{index:08x}-0000-0000-0000-000000000000" for index in range(gpus)]
        self.facts.write_text("\n".join([*lines, f"count {gpus}", *own, base]) + "\n", encoding="utf-8")

    def setters(self) -> list[str]:
        """What was asked to be changed, ``GPU.SETTER VALUE`` each."""
        log = Path(f"{self.facts}.log")
        return log.read_text().splitlines() if log.exists() else []


def library(*defines: str) -> Path:
    """The library, built when it is needed, named as the driver's is; in a folder of its own for each variant."""
    folder = BUILD / ("-".join(defines) or "plain")
    binary = folder / "libnvidia-ml.so.1"
    if not binary.exists() or binary.stat().st_mtime < SOURCE.stat().st_mtime:
        if shutil.which("cc") is None:
            pytest.skip("no C compiler (cc): the real pynvml is NOT tested here")
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-Wno-format-truncation", "-shared", "-fPIC"]
        own = folder / f"{binary.name}.{os.getpid()}"
        subprocess.run(["cc", *flags, *(f"-D{name}" for name in defines), str(SOURCE), "-o", str(own)], check=True)
        own.replace(binary)
    return binary


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, *defines: str) -> Shim:
    """Make this process's pynvml use the shim, until the test ends. It answers like one H200 at first."""
    built = library(*defines)
    shim = Shim(built, folder / "nvml.facts")
    monkeypatch.setenv("NVML_SHIM", str(shim.facts))
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(built)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    shim.say()
    return shim
