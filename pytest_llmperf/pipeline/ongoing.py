"""Cases between their first run and their result: reds of one server are confirmed together, by one fresh start."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pytest_llmperf import judge
from pytest_llmperf.errors import EngineError, LlmperfError
from pytest_llmperf.judge.words import size
from pytest_llmperf.leases.host import HostLease
from pytest_llmperf.model.quarantine import excuse
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.pipeline.judging import NO_TIME, Judged, confirmed, judge_case, unconfirmed
from pytest_llmperf.pipeline.measure import CaseMeasurement
from pytest_llmperf.pipeline.servers import server_key
from pytest_llmperf.pipeline.shelf import Shelf


@dataclass(kw_only=True)
class Ongoing:
    """A prepared case that is being measured and judged; a failure of the engine is part of its result.

    Attributes:
        prepared: what was found before.
        discard: ends the servers that took part in a failure.
        settled: whether a fresh start was made for its reds, or cannot be.
    """

    prepared: CaseResult
    work: CaseMeasurement
    shelf: Shelf
    discard: Callable[[EngineError], None]
    judged: Judged = field(default_factory=Judged)
    settled: bool = False
    failure: str = ""
    elapsed_s: float = 0.0

    @property
    def key(self) -> str:
        """Of the candidate's server."""
        return server_key(self.work.subject)

    @property
    def waits(self) -> bool:
        """Whether a red waits for a fresh start."""
        return self.judged.red and not self.settled

    def measure(self) -> None:
        """Measure and judge; reds that no fresh start can confirm are marked so."""
        with self._watched():
            self.judged = judge_case(self.work, self.shelf, self.prepared)
        if self.judged.red and not self.work.servers.can_restart(self.work.subject):
            self._settle_unconfirmed("no fresh start was possible")

    def confirm(self, *, fresh: bool) -> bool:
        """Measure once more, on a fresh start of the candidate's server, made here unless it is ``fresh`` already.

        Whether the next case of that server finds it fresh.
        """
        if not self.work.affords(1, fresh=True):
            self._settle_unconfirmed(NO_TIME)
            return fresh
        self.settled = True
        with self._watched():
            if not fresh:
                self.work.fresh_start()
            self.judged = confirmed(self.work, self.judged, family=self.shelf.family)
        return not self.failure  # which takes the server with it

    def result(self) -> CaseResult:
        """What is known so far; a red that still waits says so."""
        judged = unconfirmed(self.judged, "the session ended before a fresh start") if self.waits else self.judged
        return replace(
            self.prepared,
            verdicts=tuple(self._excused(verdict) for verdict in judged.verdicts),
            failures=judged.failures,
            account=judged.account.text,
            beside=judged.beside,
            changed=judged.changed,
            failure=self.failure,
            metrics=self.work.mean_values(),
            findings=(*self.prepared.findings, *self.work.findings(), *judged.account.findings),
            environment=self.work.facts(),
            runs=tuple(self.work.executed),
            elapsed_s=self.elapsed_s,
        )

    def _excused(self, verdict: Verdict) -> Verdict:
        """Without a baseline nothing is known that somebody could own, so that stays red."""
        if verdict.word is Word.NO_BASELINE:
            return verdict
        case, today = self.work.case, self.work.clock.utc_now().date()
        return replace(verdict, quarantine=excuse(case.suite.quarantine, case.id, verdict.metric, today))

    def _seen(self) -> Iterator[str]:
        """The losses that were found before something broke."""
        for gate, verdict in zip(self.work.case.gates, self.judged.verdicts, strict=False):
            if verdict.word is Word.REGRESSED and verdict.change is not None:
                yield f"seen before a fresh start: {verdict.metric} {size(gate, verdict.change, signed=True)}"

    def _settle_unconfirmed(self, why: str) -> None:
        self.settled, self.judged = True, unconfirmed(self.judged, why)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """One stretch of work on the machine, and what comes of it when it breaks."""
        begun = self.work.clock.monotonic_ns()
        try:
            with HostLease(show=self.work.show), self.work.injecting():
                yield
        except EngineError as error:
            self.judged, self.failure = Judged(), "\n".join([error.describe(), *self._seen()])
            self.discard(error)
        except (LlmperfError, OSError) as error:
            if self.settled:  # what was seen before the fresh start was seen
                self.judged = unconfirmed(self.judged, f"the run after a fresh start broke: {error}")
            else:
                self.judged = Judged(verdicts=tuple(judge.void(self.work.case.gates, f"nothing was judged: {error}")))
        finally:
            self.elapsed_s += (self.work.clock.monotonic_ns() - begun) / 1e9


def settle(cases: Sequence[Ongoing]) -> list[CaseResult]:
    """The results, after the reds were confirmed: one fresh start for all that share a server."""
    waiting: dict[str, list[Ongoing]] = {}
    for case in cases:
        if case.waits:
            waiting.setdefault(case.key, []).append(case)
    for sharing in waiting.values():
        fresh = False
        for case in sharing:
            fresh = case.confirm(fresh=fresh)
    return [case.result() for case in cases]
