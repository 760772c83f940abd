"""The content of a data file, and what is said where there is none."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from pytest_llmperf.errors import DataError, UnavailableError
from pytest_llmperf.model.suite import DataFile

T = TypeVar("T")

Parser = Callable[[bytes, str], Sequence[T]]
"""Bytes of a file and its name in messages, to what is in it."""


def read_data(file: DataFile, folder: Path, parse: Parser[T], *, key: str, origin: str) -> tuple[DataFile, Sequence[T]]:
    """A data file with its SHA-256, and what is in it; read once for all cases of a session.

    Args:
        file: a relative path is one from ``folder``.
        folder: of the suite file.
        parse: makes entries of the bytes.
        key: of the suite, which gives the path.
        origin: where people get the file, in a sentence.

    Raises:
        UnavailableError: there is no such file.
        DataError: it is another file than the suite names, or malformed.
    """
    path = folder / file.path
    if not path.is_file():
        wanted = f" The suite asks for SHA-256 {file.sha256}." if file.sha256 else ""
        raise UnavailableError(f"no file {path}, which {key} names. {origin}{wanted}")
    state = path.stat()
    try:
        sha256, entries = _read(path, (state.st_size, state.st_mtime_ns), parse)
    except OSError as error:
        raise UnavailableError(f"{path}, which {key} names, cannot be read: {error.strerror}. {origin}") from None
    if file.sha256 is not None and file.sha256.lower() != sha256:
        raise DataError(
            f"{path} is another file than {key} asks for, or a broken one: its SHA-256 is {sha256}, "
            f"the suite says {file.sha256}. {origin}"
        )
    return replace(file, sha256=sha256), entries


@lru_cache(maxsize=2)  # a large one and a small one; recorded conversations take a gigabyte
def _read(path: Path, version: tuple[int, int], parse: Parser[T]) -> tuple[str, Sequence[T]]:  # noqa: ARG001
    content = path.read_bytes()
    return hashlib.sha256(content).hexdigest(), parse(content, str(path))
