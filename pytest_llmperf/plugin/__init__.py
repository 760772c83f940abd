"""The pytest plugin; the only package that imports pytest.

Hooks live here, a line or two each; what they do lives beside them. Nothing heavy is imported until a suite file or
one of the fixtures is met, so that a session without suites costs nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmperf.model.suffix import SUITE_SUFFIX
from pytest_llmperf.plugin import options
from pytest_llmperf.plugin.fixtures import engine_server, gpu_lease, llmperf

if TYPE_CHECKING:
    from pytest_llmperf.plugin.state import State

__all__ = ["engine_server", "gpu_lease", "llmperf"]

MARKERS = (
    "preconditions: checks of machine and engine for one case of a suite",
    "throughput: throughputs of one case of a suite",
    "latency: TTFT, TPOT, ITL and E2EL of one case of a suite",
    "acceptance: speculative acceptance of one case of a suite",
    "llmperf(suite, engine): the suite file and the arm that the fixtures engine_server and llmperf use",
    "gpus(n): the test needs n GPUs; skipped where there are fewer",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add(parser)


def pytest_configure(config: pytest.Config) -> None:
    options.check(config)
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(ReportListener(config), "llmperf-reports")
    if config.pluginmanager.hasplugin("xdist"):
        from pytest_llmperf.plugin import xdist  # noqa: PLC0415

        config.pluginmanager.register(xdist, "llmperf-xdist")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith(SUITE_SUFFIX):
        return None
    from pytest_llmperf.plugin.collect import SuiteFile  # noqa: PLC0415

    return SuiteFile.from_parent(parent, path=file_path)


def _state(config: pytest.Config) -> State | None:
    """The session's state, once a suite was collected or a fixture asked for it."""
    module = _loaded("pytest_llmperf.plugin.state")
    return None if module is None else module.existing(config)


def _loaded(name: str) -> Any:
    return sys.modules.get(name)


def pytest_collection_finish(session: pytest.Session) -> None:
    if (state := _state(session.config)) is not None:
        from pytest_llmperf.plugin.collect import selection  # noqa: PLC0415

        state.select(selection(session.items))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if not options.of(session.config).plan:
        return None
    if session.testsfailed:
        raise session.Interrupted(f"{session.testsfailed} error{'s' * (session.testsfailed != 1)} during collection")
    from pytest_llmperf.plugin.plan import show  # noqa: PLC0415

    show(session)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    result = yield
    if (state := _state(item.config)) is not None:
        state.keep_for(nextitem)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if _state(item.config) is not None:
        from pytest_llmperf.plugin.outcome import annotate  # noqa: PLC0415

        annotate(item, call, report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, Any] | None:
    if not hasattr(report, "llmperf_word"):
        return None
    from pytest_llmperf.plugin.outcome import status  # noqa: PLC0415

    return status(report)


class ReportListener:
    """Hears the reports of this process and, under xdist, of the workers; the results travel on them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if hasattr(report, "llmperf_result"):
            from pytest_llmperf.plugin import summary  # noqa: PLC0415

            summary.remember(self._config, report)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if (module := _loaded("pytest_llmperf.plugin.summary")) is not None:
        module.show(terminalreporter, config)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if (state := _state(session.config)) is not None:
        state.close()
        if state.results:
            from pytest_llmperf.plugin import summary  # noqa: PLC0415

            summary.complete(session.config, state.results)
    if options.of(session.config).reports and not hasattr(session.config, "workerinput"):
        from pytest_llmperf.plugin import summary  # noqa: PLC0415

        summary.write_reports(session)


def pytest_unconfigure(config: pytest.Config) -> None:
    if (termination := _loaded("pytest_llmperf.plugin.termination")) is not None:
        termination.of(config).restore()
    if (state := _state(config)) is not None:
        state.close()
