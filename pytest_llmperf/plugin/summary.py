"""The end of a session: a block per case on the terminal, and the reports that were asked for.

Works from what travelled on the test reports, so that it is the same with and without xdist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from pytest_llmperf import registry
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.plugin import options
from pytest_llmperf.reports import sweeps, terminal

RESULTS = pytest.StashKey[dict[str, CaseResult]]()


def remember(config: pytest.Config, report: pytest.TestReport) -> None:
    """Keep the newest result of the case that ``report`` belongs to."""
    result = CaseResult.from_dict(json.loads(report.llmperf_result))
    config.stash.setdefault(RESULTS, {})[result.nodeid] = result


def complete(config: pytest.Config, results: Mapping[str, CaseResult]) -> None:
    """Add the verdicts that no report could carry, as the session was interrupted."""
    told = config.stash.setdefault(RESULTS, {})
    for nodeid, result in results.items():
        if result.verdicts and not (nodeid in told and told[nodeid].verdicts):
            told[nodeid] = result


def show(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One block per case, one line per sweep."""
    results = config.stash.get(RESULTS, {})
    if not results:
        return
    terminalreporter.section("llmperf", sep="=")
    for result in results.values():
        for line in terminal.render(result):
            terminalreporter.write_line(line)
    for line in sweeps.render(tuple(results.values())):
        terminalreporter.write_line(line)


def write_reports(session: pytest.Session) -> None:
    """Write every ``--llmperf-report``, also one without any case: an older file must not pass for this session's.

    A report that cannot be written is said, and turns a green session red.
    """
    config = session.config
    results = tuple(config.stash.get(RESULTS, {}).values())
    for kind, path in options.of(config).reports:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(registry.load("report", kind)(results), encoding="utf-8")
        except OSError as error:
            config.get_terminal_writer().line(f"\n--llmperf-report={kind}:{path}: cannot be written: {error}", red=True)
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
