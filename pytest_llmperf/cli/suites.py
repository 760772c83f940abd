"""The suites that a command line names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmperf.model.suite import Suite


def suites_at(paths: Sequence[Path], overrides: Mapping[str, str]) -> list[Suite]:
    """The suites in files, and those below folders.

    Raises:
        UsageError: a folder without one.
        SuiteError: a suite with mistakes.
    """
    from pytest_llmperf import suitefile  # noqa: PLC0415 (--help answers at once)
    from pytest_llmperf.errors import UsageError  # noqa: PLC0415
    from pytest_llmperf.model.suffix import SUITE_SUFFIX  # noqa: PLC0415

    files = [file for path in paths for file in (sorted(path.rglob(f"*{SUITE_SUFFIX}")) or [path])]
    if empty := [path for path in files if path.is_dir()]:
        raise UsageError(f"{empty[0]}: there is no suite (*{SUITE_SUFFIX}) here")
    return [suitefile.load_suite(file, overrides=overrides, environ=os.environ) for file in files]
