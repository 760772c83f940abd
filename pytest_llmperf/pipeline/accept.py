"""Saved runs become a baseline: by a person, with a reason."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pytest_llmperf import baseline
from pytest_llmperf.checks import comparability
from pytest_llmperf.errors import BaselineError
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.pipeline.saved_cases import SavedCase


@dataclass(frozen=True, slots=True)
class Change:
    """A file that an acceptance writes: its text before ("" where there was none) and after."""

    path: Path
    before: str
    after: str

    def diff(self) -> Iterator[str]:
        """As a review shows it."""
        before, after = self.before.splitlines(), self.after.splitlines()
        old = str(self.path) if self.before else "/dev/null"
        return difflib.unified_diff(before, after, old, str(self.path), lineterm="", n=1)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What an acceptance does.

    Attributes:
        changes: the files.
        left_out: run id -> why it is not among the values.
        moved: metric -> mean before and after, of those that the old baseline had.
        spread: fact -> value -> number of sessions, of the facts that are not the same in all of them.
    """

    changes: Sequence[Change]
    left_out: Mapping[str, str]
    moved: Mapping[str, tuple[float, float]]
    spread: Mapping[str, Mapping[str, int]]


def accept(
    case: SavedCase,
    store: baseline.Store,
    *,
    why: str,
    on: date,
    commit: str,
    metrics: Collection[str] = (),
    any_hardware: bool | None = None,
    write: bool = True,
) -> Acceptance:
    """Make the runs of a case its baseline, in place of the one that it has.

    Args:
        case: with the sessions to keep.
        store: where baselines are.
        why: the reason.
        on: the day.
        commit: what was measured.
        metrics: to keep; () for those of the baseline that it has.
        any_hardware: whether counts are kept for any hardware; None for as it is now.
        write: False only tells what would change.

    Raises:
        BaselineError: no run, no reason, an invalid metric, or nothing says which metrics to keep.
    """
    if case.variant:
        raise BaselineError(f"{case.case}: {case.arm} is a variant, whose values cannot be its baseline")
    if not case.runs:
        raise BaselineError(f"{case.case}: no saved run may become a baseline")
    hardware = case.facts.get("hardware", "")
    stored = store.read_case(hardware, case.suite, case.case, any_hardware=True)
    kept = set(metrics) or {name for each in stored for name in each.metrics}
    if not kept:
        raise BaselineError(f"{case.case}: has no baseline yet, so say what to keep: --metrics output_throughput,…")
    case = case.valid_for(kept)
    if not case.runs:
        raise BaselineError(f"{case.case}: no run is valid for {', '.join(sorted(kept))}")
    everywhere = any(each.facts.get("hardware") == "any" for each in stored) if any_hardware is None else any_hardware
    accepted = baseline.accept(
        CaseResult(
            suite=case.suite, case=case.case, nodeid="", arm=case.arm, hardware=hardware,
            environment=case.facts,
        ),
        case.measurement(),
        why=why,
        on=on,
        commit=commit,
        metrics=kept,
    )  # fmt: skip
    texts = store.texts_of(hardware, case.suite, accepted, any_hardware=everywhere)
    changes = [
        Change(path, path.read_text(encoding="utf-8") if path.exists() else "", text) for path, text in texts.items()
    ]
    if write:
        store.write_case(hardware, case.suite, accepted, any_hardware=everywhere)
    return Acceptance(changes, case.left_out, _moved(stored, accepted), _spread(case))


def _spread(case: SavedCase) -> dict[str, dict[str, int]]:
    """Each session by its first run."""
    sessions: dict[str, Mapping[str, str]] = {}
    for saved in case.runs:
        sessions.setdefault(saved.run.session, saved.run.environment)
    return comparability.spread(sessions.values())


def _moved(stored: Sequence[baseline.Baseline], accepted: baseline.Baseline) -> dict[str, tuple[float, float]]:
    before = {name: each.measurement().mean(name) for each in reversed(stored) for name in each.metrics}
    after = accepted.measurement()
    return {name: (before[name], after.mean(name)) for name in sorted(accepted.metrics) if name in before}
