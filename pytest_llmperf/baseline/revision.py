"""The baselines of a git revision, so that a change under test cannot edit the gate that it has to pass."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from pytest_llmperf.errors import UsageError

TIMEOUT_S = 60.0
"""Of one git command."""


def checked_out(baselines: Path, ref: str, cache: Path) -> Path:
    """A folder with what ``baselines`` held at ``ref``; empty when it was not there then.

    Args:
        baselines: the store in a work tree; it need not exist.
        ref: a branch, tag or commit.
        cache: gets one folder for each commit; a folder is made whole or not at all, so processes may share it.

    Raises:
        UsageError: no repository, no such revision, or git cannot be run.
    """
    home = _existing(baselines)
    top = Path(_git(home, "rev-parse", "--show-toplevel").decode().strip())
    commit = _git(home, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", about=ref).decode().strip()
    inside = baselines.resolve().relative_to(top.resolve())
    place = cache / f"{commit}-{'-'.join(inside.parts) or 'root'}"
    if place.is_dir():
        return place
    cache.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=cache))
    try:
        held = _git(top, "ls-tree", "-r", "--name-only", commit, "--", f"{inside.as_posix()}/")
        if held:
            with tarfile.open(
                fileobj=io.BytesIO(_git(top, "archive", "--format=tar", commit, "--", str(inside)))
            ) as tar:
                tar.extractall(draft, filter="data")
        found = draft / inside
        found.mkdir(parents=True, exist_ok=True)
        try:
            found.rename(place)
        except OSError:  # another process was first
            if not place.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place


def _existing(path: Path) -> Path:
    """The nearest folder above ``path``, or it itself, that there is."""
    return next(folder for folder in (path.resolve(), *path.resolve().parents) if folder.is_dir())


def _git(folder: Path, *arguments: str, about: str = "") -> bytes:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"--llmperf-baselines=git: git cannot be run: {error}") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise UsageError(
            f"--llmperf-baselines=git:{about}: no such revision; a shallow clone may lack it (git fetch)"
            if about
            else f"--llmperf-baselines=git: {said or f'git {arguments[0]} failed'}"
        )
    return done.stdout
