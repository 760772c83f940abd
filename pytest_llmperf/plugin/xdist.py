"""Cases under pytest-xdist: all cases of an arm go to one worker. The only file that knows xdist."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmperf.model.suffix import SUITE_ITEM, SUITE_SUFFIX
from pytest_llmperf.plugin import options, termination
from pytest_llmperf.plugin.scope import scope_of

if TYPE_CHECKING:
    from xdist.remote import Producer


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Any:
    """Distribute by arm where there are suites; everything else goes as ``--dist`` says.

    So a server is started once, and its reds are confirmed together. ``loadfile`` keeps an arm together by itself.
    """
    suites = [suite for arg in config.args for suite in _suites(Path(arg.partition("::")[0]))]
    if not suites:
        return None
    _check_command_line(config, suites)
    termination.of(config).install()
    dist = config.getvalue("dist")
    if dist not in {"load", "loadgroup", "loadscope", "worksteal"}:
        return None
    from xdist.scheduler import LoadGroupScheduling  # noqa: PLC0415 (only under -n)

    class CaseScheduling(LoadGroupScheduling):  # type: ignore[misc,unused-ignore]
        """The items of an arm together; tests that are no suite's by scope or by mark, as the user wants it."""

        def _split_scope(self, nodeid: str) -> str:
            if SUITE_ITEM in nodeid:
                return scope_of(nodeid)
            return nodeid.rpartition("::")[0] if dist == "loadscope" else str(super()._split_scope(nodeid))

    return CaseScheduling(config, log)


def _check_command_line(config: pytest.Config, suites: Sequence[Path]) -> None:
    """Complain of unknown arms and overrides here: an error of a worker would be lost.

    A suite with mistakes is left to the workers, who collect it and report them all.
    """
    wanted = options.of(config)
    if not (wanted.engines or wanted.overrides or wanted.ab):
        return
    from pytest_llmperf import suitefile  # noqa: PLC0415 (only with such options)
    from pytest_llmperf.errors import SuiteError  # noqa: PLC0415

    try:
        loaded = [suitefile.load_suite(path, overrides=wanted.overrides, environ=os.environ) for path in suites]
    except SuiteError:
        return
    options.check_against(wanted, loaded)


def _suites(path: Path) -> Iterator[Path]:
    suffix = SUITE_SUFFIX
    if not path.is_dir():
        if path.name.endswith(suffix):
            yield path
        return
    for folder, folders, files in os.walk(path):
        yield from (Path(folder, name) for name in files if name.endswith(suffix))
        folders[:] = [name for name in folders if not name.startswith(".")]
