"""Recent sessions: the second stored reference of a case, beside its committed baseline.

Sessions are chosen by what they are and never by how they were judged: to leave out those that were red would leave the
lucky ones, which are too fast and too much alike. A loss that stays among them is held by the committed baseline, which
forgives no slow sink.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

from pytest_llmperf.checks import comparability
from pytest_llmperf.errors import SavedRunError
from pytest_llmperf.history.fitness import invalid, is_variant, unfit
from pytest_llmperf.history.folder import AHEAD, candidates
from pytest_llmperf.history.run_file import read_facts
from pytest_llmperf.model.measurement import Measurement, Observation, OneRun
from pytest_llmperf.model.saved_run import SavedFacts

MOST_SESSIONS = 20
OLDEST = timedelta(days=60)
FEWEST_SESSIONS = 5
"""Of a metric: fewer are no reference. With five the error rates hold (docs/verdicts.md) and some power is lost."""


@dataclass(frozen=True, slots=True)
class Recent:
    """The recent sessions of a case.

    Attributes:
        measurement: of the metrics that ``FEWEST_SESSIONS`` have, in order of time; None where there is none.
        sessions: how many went in, over all metrics.
        unreadable: folders that were passed over because ``run.json`` is missing, damaged or another tool's.
    """

    measurement: Measurement | None
    sessions: int
    unreadable: int


def recent(
    save: Path,
    suite: str,
    case: str,
    metrics: Collection[str],
    *,
    facts: Mapping[str, str],
    now: datetime,
    without: Collection[str] = (),
    since: date | None = None,
) -> Recent:
    """The last ``MOST_SESSIONS`` valid sessions of a case that may be compared with what has ``facts``.

    Candidates of the case's own arm alone; runs with failed requests, an injected loss, or other facts of
    ``comparability.REFUSE`` or ``SUBJECT`` are passed over, and so are the values that a run's findings make invalid.

    Args:
        save: folder of the saved runs.
        suite: name.
        case: id.
        metrics: that are judged; a run without a valid value of any of them is passed over.
        facts: of the runs that are being judged, natural output included (``comparability.OUTPUT``).
        now: in UTC; runs of more than ``OLDEST`` before it are too old, and those of more than ``AHEAD`` after it had a
            wrong clock.
        without: sessions that are being judged.
        since: the day on which the committed baseline was accepted: what ran until then was another engine, as far as
            anybody knows, and one that was faster would make every night red.
    """
    chosen = _Chosen()
    for folder in candidates(save, case, since=_start(now, since), until=now + AHEAD):
        try:
            saved = read_facts(folder)
        except SavedRunError:
            chosen.unreadable += 1
            continue
        if (saved.run.suite, saved.run.case) != (suite, case) or saved.run.session in without:
            continue
        values = _usable(saved, metrics, facts)
        if values and not chosen.takes(saved.run.session, values):
            break
    return chosen.result()


@dataclass(slots=True)
class _Chosen:
    """What was found so far: values by session, the newest first."""

    runs: dict[str, list[Mapping[str, float]]] = field(default_factory=dict)
    unreadable: int = 0

    def takes(self, session: str, values: Mapping[str, float]) -> bool:
        """Keep a run; False once it would be of a session too many."""
        if session not in self.runs and len(self.runs) == MOST_SESSIONS:
            return False
        self.runs.setdefault(session, []).append(values)
        return True

    def result(self) -> Recent:
        ordered = [(session, values) for session, runs in self.runs.items() for values in runs][::-1]
        runs = (OneRun(session, order, values, {}) for order, (session, values) in enumerate(ordered))
        samples = Measurement.of_runs(runs).samples
        enough = {name: found for name, found in samples.items() if _sessions(found) >= FEWEST_SESSIONS}
        return Recent(Measurement(enough) if enough else None, len(self.runs), self.unreadable)


def _sessions(found: Sequence[Observation]) -> int:
    return len({each.session for each in found})


def _start(now: datetime, since: date | None) -> datetime:
    oldest = now - OLDEST
    if since is None:
        return oldest
    return max(oldest, datetime.combine(since, time.max, UTC))


def _usable(saved: SavedFacts, metrics: Collection[str], facts: Mapping[str, str]) -> dict[str, float]:
    """The values of ``metrics`` that a night with ``facts`` may be compared with."""
    run = saved.run
    if is_variant(run.case, run.arm) or unfit(saved) or comparability.refusals(facts, run.environment):
        return {}
    if comparability.other_subject(facts, run.environment):
        return {}
    answered = {comparability.OUTPUT: str(saved.totals["total_output_tokens"] or 0)}
    if comparability.refused_output(facts, answered):
        return {}
    not_judged = {**invalid(saved, metrics), **comparability.refused_goodput(facts, run.environment)}
    return {name: saved.values[name] for name in metrics if name in saved.values and name not in not_judged}
