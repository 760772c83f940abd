"""The baselines of a git revision, so that a change under test cannot edit the gate that it has to pass."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pytest_llmperf.errors import UsageError

TIMEOUT_S = 60.0
"""Of one git command."""

_FILES = {"100644", "100755"}
"""Modes of git: a link, or a repository inside, is no baseline."""


def check_out(baselines: Path, ref: str, folder: Path) -> Path:
    """Write what ``baselines`` held at ``ref`` below ``folder``; where that is. Nothing, when it was not there then.

    The contents come out of git's own objects, whatever the work tree and its attributes say.

    Args:
        baselines: the store in a work tree; it need not exist.
        ref: a branch, tag or commit.
        folder: of this process alone: what lies about in a work tree could be anybody's.

    Raises:
        UsageError: no repository, no such revision, or git cannot be run.
        OSError: ``folder`` cannot be written.
    """
    home = _existing(baselines)
    top = Path(_git(home, "rev-parse", "--show-toplevel").decode().strip())
    commit = _git(home, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", about=ref).decode().strip()
    try:
        inside = baselines.resolve().relative_to(top.resolve())
    except ValueError:
        raise UsageError(f"--llmperf-baselines=git:{ref}: {baselines} is a link out of the repository") from None
    place = folder / inside
    place.mkdir(parents=True, exist_ok=True)
    listed = _git(top, "ls-tree", "-r", "-z", commit, "--", f"{inside.as_posix()}/").decode(errors="surrogateescape")
    for entry in filter(None, listed.split("\0")):
        about, _, name = entry.partition("\t")
        mode, _, digest = about.split()
        if mode in _FILES:
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_git(top, "cat-file", "blob", digest))
    return place


def _existing(path: Path) -> Path:
    """The nearest folder above ``path``, or it itself, that there is."""
    return next(folder for folder in (path.resolve(), *path.resolve().parents) if folder.is_dir())


def _git(folder: Path, *arguments: str, about: str | None = None) -> bytes:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"--llmperf-baselines=git: git cannot be run: {error}") from None
    if done.returncode == 0:
        return done.stdout
    if about is not None:
        raise UsageError(f"--llmperf-baselines=git:{about}: no such revision; a shallow clone may lack it (git fetch)")
    said = done.stderr.decode(errors="replace").strip()
    raise UsageError(f"--llmperf-baselines=git: {said or f'git {arguments[0]} failed'}")
