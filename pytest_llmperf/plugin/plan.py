"""``--llmperf-plan``: show what would run."""

from __future__ import annotations

import pytest

from pytest_llmperf.pipeline import plan
from pytest_llmperf.plugin.state import of


def show(session: pytest.Session) -> None:
    """Print the plan of the selected cases through pytest's terminal; other tests are not run and not shown."""
    state = of(session.config)
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    cases = []
    for nodeid, selected in state.selected.items():
        items = [item.name for item in session.items if item.parent is not None and item.parent.nodeid == nodeid]
        cases.append((nodeid, selected.case.restricted_to(selected.groups), items))
    subjects = [state.campaign.subject(case) for _, case, _ in cases]
    reporter.section("llmperf plan: nothing is started")
    for line in plan.describe(cases, subjects, state.options.save):
        reporter.write_line(line)
