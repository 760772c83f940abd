"""Cases under pytest-xdist: all items of a case go to one worker. The only file that knows xdist."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer

SUITE_ITEM = ".llmperf.yaml::"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Any:
    """Distribute by case, where there are suites and no other distribution was asked for.

    ``loadscope`` and ``loadfile`` keep a case together by themselves; ``loadgroup`` does so by the mark that
    ``collect`` puts on the items.
    """
    if config.getvalue("dist") != "load" or not any(_has_suite(Path(arg.partition("::")[0])) for arg in config.args):
        return None
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 (only under -n)

    class CaseScheduling(LoadScopeScheduling):  # type: ignore[misc,unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.rpartition("::")[0] if SUITE_ITEM in nodeid else nodeid

    return CaseScheduling(config, log)


def _has_suite(path: Path) -> bool:
    suffix = SUITE_ITEM.removesuffix("::")
    if not path.is_dir():
        return path.name.endswith(suffix)
    for _, folders, files in os.walk(path):
        if any(name.endswith(suffix) for name in files):
            return True
        folders[:] = [name for name in folders if not name.startswith(".")]
    return False
