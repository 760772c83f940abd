"""An audit of baselines and gates: what no verdict says, and what makes verdicts worth less from week to week.

Pure: suites, files and saved runs go in with the day, concerns come out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase

from pytest_llmperf import baseline, judge, suitefile
from pytest_llmperf.baseline import Baseline, Entry
from pytest_llmperf.checks.comparability import ANY_HARDWARE
from pytest_llmperf.errors import shown
from pytest_llmperf.judge.stored import ENOUGH_SESSIONS
from pytest_llmperf.judge.words import size
from pytest_llmperf.model.case import Case, workload_digest
from pytest_llmperf.model.concern import Concern, Kind
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.suite import Suite
from pytest_llmperf.pipeline import nights
from pytest_llmperf.pipeline.saved_cases import SavedCase

STALE_DAYS = 90
"""An anchor of a quarter ago is of another driver, another engine, and often of other people."""
QUARANTINE_DAYS = 90
"""The furthest end of a quarantine: a red that nobody ends within a quarter is not known, it is given up."""
AHEAD_DAYS = 1
"""So much an acceptance may be ahead of today: the calendar or the clock of another machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What an audit is of.

    Attributes:
        suites: the suites.
        hardware: the slugs on which a case should have a baseline.
        whole: whether there are no other suites, so that a file of another one is an orphan.
    """

    suites: Sequence[Suite]
    hardware: Callable[[Case], Sequence[str]]
    whole: bool

    @property
    def cases(self) -> list[Case]:
        """Those with a gate on a stored baseline; a variant has that of another case."""
        cases = (case for suite in self.suites for case in _cases(suite) if case.arm.default)
        return [case for case in cases if _stored(case)]

    @property
    def known(self) -> set[tuple[str, str]]:
        """Suite and id of every case that there could be, also on arms that run only when named."""
        return {(suite.name, case.id) for suite in self.suites for case in _cases(suite)}


def audit(
    scope: Scope, entries: Sequence[Entry], saved: Sequence[SavedCase], *, today: date, stale_days: int = STALE_DAYS
) -> list[Concern]:
    """Everything that is wrong, worst kind first, then by file.

    Args:
        scope: the suites, and where they run.
        entries: every file of the store.
        saved: by ``saved_cases.by_case``.
        today: for whatever expires.
        stale_days: the age at which a baseline is stale.
    """
    cases = scope.cases
    found = [
        *_files(scope, entries, today, stale_days),
        *(c for suite in scope.suites for c in _quarantines(suite, today)),
    ]
    for case in cases:
        for slug in scope.hardware(case):
            shelf = _Shelf(case, slug, entries)
            found += [*_missing(shelf), *_refused(shelf), *_powers(shelf), *_improved(shelf, saved, len(cases))]
    order = list(Kind)
    return sorted(dict.fromkeys(found), key=lambda each: (order.index(each.kind), each.place.partition(":")[0]))


class _Shelf:
    """The files of one case that serve on one class of hardware."""

    def __init__(self, case: Case, slug: str, entries: Sequence[Entry]) -> None:
        self.case = case
        self.slug = slug
        self.any_hardware = case.suite.hardware.gpu is None
        self.all = [
            each for each in entries if (each.suite, each.case) == (case.suite.name, case.id) and not each.numbers
        ]
        slugs = (slug, ANY_HARDWARE) if self.any_hardware else (slug,)
        self.files = [each for name in slugs for each in self.all if each.hardware == name]

    def holder(self, metric: str) -> tuple[Entry, Baseline] | None:
        """The file whose values of a metric are judged by, the machine's own before that of any hardware."""
        held = ((each, each.baseline) for each in self.files if each.baseline is not None)
        return next(((entry, stored) for entry, stored in held if metric in stored.metrics), None)

    def held(self) -> Iterator[tuple[Gate, Entry, Baseline]]:
        """The gates that have a baseline that may be compared with, each with it."""
        for gate in _stored(self.case):
            holder = self.holder(gate.metric.name)
            if holder is not None and not _unlike(self.case, holder[1]):
                yield gate, *holder

    def place(self, gate: Gate) -> str:
        """Where the suite asks for a gate."""
        return f"{shown(self.case.suite.file)}:{gate.line}"

    def record(self, mode: str) -> str:
        """The command that records a baseline."""
        return f"pytest '{shown(self.case.suite.file)}::{self.case.id}' --llmperf-accept={mode} --llmperf-why='…'"


def _stored(case: Case) -> list[Gate]:
    return [gate for gate in case.gates if gate.reference is None]


def _cases(suite: Suite) -> list[Case]:
    """Those of all arms that have baselines of their own, whether they run by default or only when named."""
    own = [name for name, arm in suite.arms.items() if arm.variant_of is None]
    return suitefile.expand(suite, engines=own) if own else []


def _files(scope: Scope, entries: Sequence[Entry], today: date, stale_days: int) -> Iterator[Concern]:
    known, names = scope.known, {suite.name for suite in scope.suites}
    for entry in entries:
        if not (scope.whole or entry.suite in names):
            continue
        place = shown(entry.path)
        if entry.error:
            yield Concern(kind=Kind.BROKEN, place=place, case=entry.case, what=entry.error,
                          remedy="restore it from its last commit, or accept a new one")  # fmt: skip
        elif (entry.suite, entry.case) not in known:
            yield Concern(kind=Kind.ORPHAN, place=place, case=entry.case, what="no case of the suites has this file",
                          remedy="llmperf baseline mv, if the case was renamed; else remove it")  # fmt: skip
        elif entry.baseline is not None:
            yield from _dated(entry, entry.baseline.accepted.on, today, stale_days)
        if expired := [each for each in entry.numbers if today >= each.expires]:
            yield Concern(kind=Kind.PUBLISHED, place=place, case=entry.case,
                          metrics=tuple(dict.fromkeys(each.metric for each in expired)),
                          what=f"expired on {min(each.expires for each in expired)}",
                          remedy="look whether the document still stands, and set a new date")  # fmt: skip


def _dated(entry: Entry, accepted: date, today: date, stale_days: int) -> Iterator[Concern]:
    """What is wrong with the day of acceptance: one to come would keep a baseline fresh for ever."""
    days, remedy = (today - accepted).days, "accept a new one: llmperf baseline accept --why '…'"
    if days < -AHEAD_DAYS:
        yield Concern(kind=Kind.BROKEN, place=shown(entry.path), case=entry.case,
                      what=f"accepted on {accepted}, a day that has not come",
                      remedy=f"write the right day, or {remedy}")  # fmt: skip
    elif days > stale_days:
        yield Concern(kind=Kind.STALE, place=shown(entry.path), case=entry.case,
                      what=f"accepted on {accepted}, {days} days ago", remedy=remedy)  # fmt: skip


def _quarantines(suite: Suite, today: date) -> Iterator[Concern]:
    ids = [case.id for case in _cases(suite)]
    for each in suite.quarantine:
        place = f"{shown(suite.file)}:{each.line}"
        if today > each.until:
            yield Concern(kind=Kind.QUARANTINE, place=place, case=each.cases, metrics=each.metrics,
                          what=f"expired on {each.until}: {each.why}",
                          remedy=f"{each.owner} ends it, or gives it a new day")  # fmt: skip
        elif not any(fnmatchcase(name, each.cases) for name in ids):
            yield Concern(kind=Kind.QUARANTINE, place=place, case=each.cases, metrics=each.metrics,
                          what="no case of the suite is called so", remedy="mend the name, or remove it")  # fmt: skip
        elif (days := (each.until - today).days) > QUARANTINE_DAYS:
            yield Concern(kind=Kind.QUARANTINE, place=place, case=each.cases, metrics=each.metrics,
                          what=f"ends on {each.until}, in {days} days: {each.why}",
                          remedy=f"{each.owner} gives it a day within {QUARANTINE_DAYS} days")  # fmt: skip


def _missing(shelf: _Shelf) -> Iterator[Concern]:
    lacking: dict[str, list[Gate]] = {}
    for gate in _stored(shelf.case):
        slug = baseline.slug_of(gate.metric.name, shelf.slug, any_hardware=shelf.any_hardware)
        broken = any(each.error for each in shelf.files if each.hardware == slug)
        if shelf.holder(gate.metric.name) is None and not broken:
            lacking.setdefault(slug, []).append(gate)
    for slug, gates in lacking.items():
        here = any(each.hardware == slug for each in shelf.files)
        elsewhere = sorted({each.hardware for each in shelf.all} - {slug})
        others = f"; there is one on {', '.join(elsewhere)}" if elsewhere and not here else ""
        where = "for any hardware" if slug == ANY_HARDWARE else f"on {slug}"
        what = f"the baseline {where} lacks it" if here else f"no baseline {where}{others}"
        yield Concern(kind=Kind.MISSING, place=shelf.place(gates[0]), case=shelf.case.id,
                      metrics=tuple(gate.metric.name for gate in gates), what=what,
                      remedy=shelf.record("all" if here else "missing"))  # fmt: skip


def _refused(shelf: _Shelf) -> Iterator[Concern]:
    for entry in shelf.files:
        if entry.baseline is not None and (why := _unlike(shelf.case, entry.baseline)):
            yield Concern(kind=Kind.REFUSED, place=shown(entry.path), case=shelf.case.id,
                          what=f"{why}: NO BASELINE for what the suite asks now",
                          remedy=shelf.record("all"))  # fmt: skip


def _unlike(case: Case, stored: Baseline) -> str:
    """What the suite asks otherwise than when the baseline was measured, as far as it can be told without a run."""
    files = (case.workload.data, None if case.load.trace is None else case.load.trace.data)
    unread = any(file is not None and file.sha256 is None for file in files)
    if not unread and stored.workload != workload_digest(case.workload, case.load):
        return "another workload or load"
    weights = stored.refuse_unless.get("weights")
    return "" if weights == case.arm.model.weights else f"weights were {weights}, and are {case.arm.model.weights}"


def _powers(shelf: _Shelf) -> Iterator[Concern]:
    """Gates that cannot see their margin, that nothing calibrates, or that judge nothing."""
    unknown: dict[str, list[str]] = {}
    for gate, entry, stored in shelf.held():
        name, place = gate.metric.name, shown(entry.path)
        judged = judge.calibrated(gate, stored.calibration)
        if judged is None:
            yield Concern(kind=Kind.UNGATED, place=shelf.place(gate), case=shelf.case.id, metrics=(name,),
                          what="margin: auto, and even the largest could not be seen: nothing is judged",
                          remedy="set a margin, or take the gate out")  # fmt: skip
            continue
        if gate.cv != 0 and (stored.calibration is None or stored.calibration.of(name) is None):
            unknown.setdefault(place, []).append(name)
        seen = judge.visible(judged, stored.measurement(), judge.LOOKS[-1].runs)
        if seen is not None and seen > judged.margin:
            yield _underpowered(shelf, judged, stored, seen)
    for place, names in unknown.items():
        yield Concern(kind=Kind.UNCALIBRATED, place=place, case=shelf.case.id, metrics=tuple(names),
                      what="nobody has measured its noise; that of the metric's class is assumed",
                      remedy=_CALIBRATE)  # fmt: skip


_CALIBRATE = "llmperf calibrate --store, on saved runs of one build"


def _underpowered(shelf: _Shelf, gate: Gate, stored: Baseline, seen: float) -> Concern:
    sessions = len(stored.sessions)
    wider = judge.auto_margin(seen)
    means = [f"a baseline of {ENOUGH_SESSIONS} sessions (it has {sessions})"] if sessions < ENOUGH_SESSIONS else []
    means += [] if wider is None else [f"a margin of {size(gate, wider)}"]
    return Concern(
        kind=Kind.UNDERPOWERED,
        place=shelf.place(gate),
        case=shelf.case.id,
        metrics=(gate.metric.name,),
        what=f"the smallest loss visible on {shelf.slug} after {judge.LOOKS[-1].runs} runs is {size(gate, seen)},"
        f" the margin {size(gate, gate.margin)}",
        remedy=" or ".join([*means, "longer runs"]),
    )


def _improved(shelf: _Shelf, saved: Sequence[SavedCase], family: int) -> Iterator[Concern]:
    held: Mapping[str, tuple[Gate, Entry, Baseline]] = {gate.metric.name: (gate, e, b) for gate, e, b in shelf.held()}
    known = (judge.calibrated(gate, stored.calibration) for gate, _, stored in held.values())
    gates = [gate for gate in known if gate is not None]
    stored = [each.baseline for each in shelf.files if each.baseline is not None]
    for case in saved:
        own = (case.suite, case.case, case.arm) == (shelf.case.suite.name, shelf.case.id, shelf.case.arm.name)
        if not own or not gates or case.facts.get("hardware") != shelf.slug:
            continue
        since = {name: each.accepted.on for name, (_, _, each) in held.items()}
        for name, change in nights.improved(case, stored, gates, since, family).items():
            _, entry, _ = held[name]
            yield Concern(
                kind=Kind.IMPROVED, place=shown(entry.path), case=case.case, metrics=(name,),
                what=f"IMPROVED in each of the latest {nights.NIGHTS} nights, by"
                f" {size(held[name][0], abs(change))} on average, and nobody accepted it",
                remedy=f"llmperf baseline accept --case {case.case} --why '…'",
            )  # fmt: skip
