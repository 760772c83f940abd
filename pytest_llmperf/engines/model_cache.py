"""Model files that we wrote ourselves, kept between sessions and checked whenever they are used."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from filelock import FileLock, Timeout

from pytest_llmperf.engines.tiny_model import Shape, digest, write
from pytest_llmperf.errors import CacheError

LOCK_TIMEOUT_S = 120.0
"""How long to wait for another process that is writing the same model (seconds for the widest one)."""

_WAY_OUT = "set XDG_CACHE_HOME to a writable folder with some space"


def path_of(shape: Shape) -> Path:
    """Where the model of this shape lies, or will: ``$XDG_CACHE_HOME/pytest-llmperf/models`` (``~/.cache``).

    Raises:
        CacheError: the variable is not set, and this user has no home folder.
    """
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        raise CacheError(f"no place for the model cache: this user has no home folder; {_WAY_OUT}") from None
    return Path(cache) / "pytest-llmperf" / "models" / f"tiny-dsv3-{digest(shape)}.gguf"


def ensure(shape: Shape) -> Path:
    """The model's file, written if it is not there or not as it was written (truncated, damaged).

    An intact one is used as it is, also from a folder that cannot be written: a file appears under its final name
    whole, so that reading needs no lock.

    Raises:
        CacheError: the cache folder cannot be written (or is full), or another process holds its lock for too long.
    """
    path = path_of(shape)
    if _intact(path):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock"), timeout=LOCK_TIMEOUT_S):
            if not _intact(path):  # not written by the one that we waited for
                _write(path, shape)
    except Timeout:
        raise CacheError(
            f"{path.with_suffix('.lock')} is held by another process for {LOCK_TIMEOUT_S:g} s; end it, or {_WAY_OUT}"
        ) from None
    except OSError as error:
        raise CacheError(f"cannot write the model cache: {error}; {_WAY_OUT}") from None
    return path


def _write(path: Path, shape: Shape) -> None:
    """The digest first: a file that appears under its final name is complete and can be checked."""
    fresh = path.with_suffix(".new")
    try:
        write(fresh, shape)
        _sidecar(path).write_text(_sha256(fresh))
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _intact(path: Path) -> bool:
    """Bytes are compared: a damaged digest is as good as none, whatever it holds."""
    try:
        return _sidecar(path).read_bytes() == _sha256(path).encode()
    except OSError:
        return False


def _sidecar(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
