"""What one pytest session knows: its options, which items were selected, and the results of the cases so far."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from pytest_llmperf import suitefile
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.metric import Group
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.suite import Suite
from pytest_llmperf.model.verdict import Word, worst
from pytest_llmperf.plugin import options, termination
from pytest_llmperf.plugin.outcome import ItemOutcome
from pytest_llmperf.plugin.progress import Progress
from pytest_llmperf.plugin.scope import scope_of
from pytest_llmperf.reports import terminal

if TYPE_CHECKING:
    from pytest_llmperf.pipeline.campaign import Campaign
    from pytest_llmperf.pipeline.ongoing import Ongoing

_KEY = pytest.StashKey["State"]()


def of(config: pytest.Config) -> State:
    """The session's state; made on first use."""
    if _KEY not in config.stash:
        config.stash[_KEY] = State(config)
    return config.stash[_KEY]


def existing(config: pytest.Config) -> State | None:
    """The session's state if anything made one."""
    return config.stash.get(_KEY, None)


@dataclass(frozen=True, slots=True)
class Selected:
    """A case with the groups that -m, -k and the command line left of it."""

    case: Case
    groups: frozenset[Group]

    @property
    def wanted(self) -> Case:
        """The case with only the gates of these groups."""
        return self.case.restricted_to(self.groups)

    @property
    def in_family(self) -> bool:
        """Whether a selected gate of it is tested against a stored baseline, as one of the session's family."""
        return any(gate.reference is None and gate.cv != 0 for gate in self.wanted.gates)


class State:
    """Measures a case when its first item asks, and remembers the answer for the others."""

    def __init__(self, config: pytest.Config) -> None:
        self.options = options.of(config)
        self.rootpath = config.rootpath
        self.progress = Progress(config)
        self._selected: dict[str, Selected] = {}
        self._suites: list[Suite] = []
        self._outcomes: dict[str, ItemOutcome] = {}
        self._results: dict[str, CaseResult] = {}
        self._failure_shown_by: dict[str, str] = {}
        self._campaign: Campaign | None = None
        self._termination = termination.of(config)
        self._broken_suites = False
        self._prepared: dict[str, CaseResult] = {}
        self.stops_at_first = config.getoption("maxfail", 0) == 1

    def suite_is_broken(self) -> None:
        """A suite could not be read: what it would have known of the command line is not known."""
        self._broken_suites = True

    def cases_of(self, suite: Suite) -> list[Case]:
        """The cases of a collected suite that ``--llmperf-engine`` leaves, none where it names none of its arms."""
        self._suites.append(suite)
        if self.options.ab is not None:
            return suitefile.expand_pair(suite, *self.options.ab)
        return suitefile.expand_known(suite, self.options.engines)

    def select(self, selected: Mapping[str, Selected]) -> None:
        """Take the final selection; complain about arms and overrides that no suite knows."""
        self._selected = dict(selected)
        if not self._broken_suites:
            options.check_against(self.options, self._suites)
            options.check_injection(self.options, [each.case.arm for each in selected.values()])

    @property
    def selected(self) -> Mapping[str, Selected]:
        """The selected cases by node id, in the order of the session."""
        return self._selected

    @property
    def campaign(self) -> Campaign:
        """Servers, stores and seeds of this session; made when something is measured or planned."""
        if self._campaign is None:
            from pytest_llmperf.pipeline.campaign import Campaign  # noqa: PLC0415 (numpy, scipy: not to collect)

            self._termination.install()
            self._campaign = Campaign(
                baselines=self.options.baselines,
                revision=self.options.revision,
                save=self.options.save,
                seed=self.options.seed,
                accept=self.options.accept,
                why=self.options.why,
                endpoint=self.options.endpoint,
                arguments=self.options.again,
                inject=self.options.inject,
                family=max(1, sum(selected.in_family for selected in self._selected.values())),
                show=self.progress,
            )
        return self._campaign

    def outcome(self, nodeid: str, case_nodeid: str, group: Group | None) -> ItemOutcome:
        """The outcome of one item; measures its case when that was not done yet."""
        if nodeid not in self._outcomes:
            result = self._result(case_nodeid, measured=group is not None)
            self._outcomes[nodeid] = self._judge_item(nodeid, case_nodeid, group, result)
        return self._outcomes[nodeid]

    def result_json(self, case_nodeid: str) -> str:
        """The case's result so far, as text that can travel between processes."""
        return json.dumps(self._results[case_nodeid].to_dict())

    def properties(self, case_nodeid: str, group: Group | None, word: Word) -> list[tuple[str, object]]:
        """What JUnit and other reports shall know of an item: its word, its metrics, its runs."""
        result = self._results[case_nodeid]
        properties: list[tuple[str, object]] = [("llmperf_outcome", str(word))]
        if group is not None:
            properties += [(name, value) for name, value in result.metrics.items() if METRICS[name].group == group]
            properties += [("llmperf_run", run) for run in result.runs]
        return properties

    def _result(self, case_nodeid: str, *, measured: bool) -> CaseResult:
        prepared = self._prepare(case_nodeid)
        if measured and _unmeasured(prepared):
            self._measure(case_nodeid)
        self.progress.clear()
        return self._results[case_nodeid]

    def _prepare(self, case_nodeid: str) -> CaseResult:
        """The case's result so far, prepared if there is none."""
        if case_nodeid not in self._results:
            selected = self._selected[case_nodeid]
            prepared = self.campaign.prepare(selected.wanted, case_nodeid, live=bool(selected.groups))
            self._prepared[case_nodeid] = self._results[case_nodeid] = prepared
        return self._results[case_nodeid]

    def _measure(self, case_nodeid: str) -> None:
        """Measure a case. Where it is red, all others that share its server come first, and then one fresh start.

        Not under ``-x``, which wants to know of the first red and of nothing else.
        """
        from pytest_llmperf.pipeline.ongoing import Ongoing, settle  # noqa: PLC0415 (numpy, scipy: not to collect)

        begun = {case_nodeid: self._begin(case_nodeid)}
        first = begun[case_nodeid]
        if isinstance(first, Ongoing) and first.waits and not self.stops_at_first:
            for nodeid in self._sharing(case_nodeid):
                if _unmeasured(self._prepare(nodeid)):
                    begun[nodeid] = self._begin(nodeid)
        ongoing = {nodeid: each for nodeid, each in begun.items() if isinstance(each, Ongoing)}
        self._results |= dict(zip(ongoing, settle(list(ongoing.values())), strict=True))

    def _begin(self, case_nodeid: str) -> Ongoing | CaseResult:
        selected, prepared = self._selected[case_nodeid], self._results[case_nodeid]
        recorded = [gate for gate in selected.case.gates if gate.reference is None]
        # Kept if what follows breaks: a case is measured once, whatever comes of it.
        self._results[case_nodeid] = replace(prepared, skipped="not judged: the measurement broke, see its error")
        begun = self.campaign.begin(selected.wanted, prepared, recorded)
        self._results[case_nodeid] = begun if isinstance(begun, CaseResult) else begun.result()
        return begun

    def _sharing(self, case_nodeid: str) -> list[str]:
        """The selected cases of the same arm, which xdist leaves to one worker, that the same server is for."""
        own = scope_of(case_nodeid)
        cases = {
            nodeid: each.wanted for nodeid, each in self._selected.items() if each.groups and scope_of(nodeid) == own
        }
        shared = self.campaign.sharing(cases[case_nodeid], cases)
        return [nodeid for nodeid in shared if nodeid != case_nodeid]

    def _judge_item(self, nodeid: str, case_nodeid: str, group: Group | None, result: CaseResult) -> ItemOutcome:
        if result.failure:
            shown_by = self._failure_shown_by.setdefault(case_nodeid, nodeid)
            if shown_by != nodeid:
                return ItemOutcome(Word.SKIPPED, f"not judged: FAILED, see {shown_by}", red=False)
            return self._outcome(Word.FAILED, result.failure, excused=bool(result.quarantine))
        if result.skipped:
            return ItemOutcome(Word.SKIPPED, result.skipped, red=False)
        if group is None:
            findings = self._prepared[case_nodeid].findings
            broken = [finding for finding in findings if finding.invalidates]
            text = "\n".join(map(str, broken or findings))
            return self._outcome(Word.INVALID if broken else Word.PASSED, text, excused=bool(result.quarantine))
        verdicts = tuple(verdict for verdict in result.verdicts if METRICS[verdict.metric].group == group)
        text = "\n".join(terminal.render_item(replace(result, verdicts=verdicts)))
        counted = worst(verdict.word for verdict in verdicts if not verdict.quarantine)
        if counted in self.options.fail_on:
            return self._outcome(counted, text)
        return self._outcome(worst(verdict.word for verdict in verdicts), text, excused=True)

    def _outcome(self, word: Word, text: str, *, excused: bool = False) -> ItemOutcome:
        """``excused``: a quarantine takes the red away, and leaves the word."""
        return ItemOutcome(word, text, red=word in self.options.fail_on and not excused)

    def keep_for(self, nextitem: pytest.Item | None) -> None:
        """Stop the servers that the next item does not need."""
        if self._campaign is None:
            return
        from pytest_llmperf.plugin.facade import needed_case  # noqa: PLC0415 (it is built on this module)

        following = None if nextitem is None else self._selected.get(getattr(nextitem.parent, "nodeid", ""))
        if following is not None:
            self._campaign.keep_for([following.wanted])
        elif nextitem is not None and (case := needed_case(self, nextitem)) is not None:
            self._campaign.keep_for([case])
        else:
            self._campaign.keep_for([])

    def close(self) -> None:
        """Stop everything that was started; may be called twice."""
        if self._campaign is not None:
            self._campaign.close()
        self._termination.restore()


def _unmeasured(result: CaseResult) -> bool:
    return not (result.verdicts or result.failure or result.skipped)
