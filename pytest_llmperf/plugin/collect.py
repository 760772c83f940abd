"""Suite files as pytest nodes: SuiteFile -> CaseNode -> one item per group of metrics."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, cast

import pytest

from pytest_llmperf import suitefile
from pytest_llmperf.errors import SuiteError, UsageError
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.metric import GROUPS, Group
from pytest_llmperf.plugin import outcome, state

PRECONDITIONS = "preconditions"

MARKS = {name: getattr(pytest.mark, name) for name in (PRECONDITIONS, *GROUPS)}
"""Made once: a suite of a thousand cases has four thousand items."""


class SuiteFile(pytest.File):
    """One ``*.llmperf.yaml``; its children are the cases of the selected arms."""

    def collect(self) -> Iterator[CaseNode]:
        """The cases of the arms that were asked for.

        Raises:
            CollectError: all mistakes of the file.
        """
        session = state.of(self.config)
        try:
            suite = suitefile.load_suite(self.path, overrides=session.options.overrides, environ=os.environ)
            cases = session.cases_of(suite)
        except (SuiteError, UsageError) as error:
            session.suite_is_broken()
            raise self.CollectError(str(error)) from None
        for case in cases:
            yield CaseNode.from_parent(self, name=case.id, case=case)


class CaseNode(pytest.Collector):
    """One case; measured once for all its items."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case

    def collect(self) -> Iterator[CaseItem]:
        """The preconditions, then one item per group that has a gate."""
        for name in (PRECONDITIONS, *self.case.groups):
            item = CaseItem.from_parent(self, name=name)
            item.add_marker(MARKS[name])
            yield item


class CaseItem(pytest.Item):
    """The preconditions of a case, or the verdicts of one group of its metrics."""

    @property
    def case_node(self) -> CaseNode:
        """The case that this is an item of."""
        return cast("CaseNode", self.parent)

    @property
    def group(self) -> Group | None:
        """The group that this item judges; None for the preconditions."""
        return None if self.name == PRECONDITIONS else cast("Group", self.name)

    def setup(self) -> None:
        """Measure and judge, once per case; what cannot be judged is an error here, before the test.

        ``--setup-plan`` and ``--setup-only`` show the order of fixtures; nobody who asks for that wants a measurement.
        """
        if self.config.option.setuponly:  # --setup-plan sets it too
            return
        session = state.of(self.config)
        judged = session.outcome(self.nodeid, self.case_node.nodeid, self.group)
        self.stash[outcome.WORD] = judged.word
        self.stash[outcome.RESULT] = session.result_json(self.case_node.nodeid)
        self.user_properties[:] = session.properties(self.case_node.nodeid, self.group, judged.word)
        outcome.raise_errors(judged)

    def runtest(self) -> None:
        """Red verdicts fail here."""
        outcome.raise_failures(state.of(self.config).outcome(self.nodeid, self.case_node.nodeid, self.group))

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Where and what, for headings and skip reasons."""
        return self.path, 0, f"{self.case_node.name}::{self.name}"


def selection(items: Sequence[pytest.Item]) -> dict[str, state.Selected]:
    """The cases among ``items`` by node id, each with the groups that are left of it."""
    selected: dict[str, state.Selected] = {}
    for item in items:
        if isinstance(item, CaseItem):
            node = item.case_node
            before = selected.get(node.nodeid)
            groups = before.groups if before else frozenset()
            if item.group is not None:
                groups |= {item.group}
            selected[node.nodeid] = state.Selected(node.case, groups)
    return selected
