"""The environment that steers an engine: of its own process and what it started, never of ours alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.model.redaction import redacted_environment
from pytest_llmperf.telemetry import processes

PREFIXES = (
    "TRTLLM_", "TLLM_", "VLLM_", "SGLANG_", "SGL_", "NCCL_", "NVSHMEM_", "UCX_", "CUDA_", "CUBLAS_", "TORCH",
    "PYTORCH_", "FLASHINFER_", "DG_", "TRITON_", "OMP_",
)  # fmt: skip
"""Of variables that can move a result. Everything that begins so is kept: a list of known good ones is soon old."""

PROC = Path("/proc")


def performance(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that can move a result, by name; the values of secrets are hidden."""
    return redacted_environment({name: value for name, value in sorted(variables.items()) if name.startswith(PREFIXES)})


def of(pid: int | None, proc: Path = PROC) -> Reading[Mapping[str, str]]:
    """The performance environment of a process and its descendants; None for ours.

    ``/proc/PID/environ`` is what a process was started with: what an engine sets by itself afterwards shows only in the
    processes that it starts, so theirs are laid over it.
    """
    if pid is None:
        return Reading(performance(os.environ), evidence="our own environment")
    try:
        found = _started_with(pid, proc)
    except PermissionError:
        return lacking(Answer.NOT_PERMITTED, f"{proc}/{pid}/environ: permission denied")
    except OSError as error:
        return lacking(Answer.UNKNOWN, f"{proc}/{pid}/environ: {error.strerror}")
    children = sorted(processes.tree(pid, proc) - {pid})
    for child in children:
        with suppress(OSError):
            found |= _started_with(child, proc)
    return Reading(performance(found), evidence=f"{proc}/{pid}/environ and {len(children)} descendants")


def _started_with(pid: int, proc: Path) -> dict[str, str]:
    entries = (proc / str(pid) / "environ").read_bytes().split(b"\0")
    pairs = (entry.decode(errors="replace").partition("=") for entry in entries if b"=" in entry)
    return {name: value for name, _, value in pairs}
