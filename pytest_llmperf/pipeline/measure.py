"""The runs of one case: warm-up, turns between the arms, a fresh start; what is valid counts, everything is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from pytest_llmperf.checks import comparability, preconditions
from pytest_llmperf.clock import Clock
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement, OneRun
from pytest_llmperf.model.run import Role
from pytest_llmperf.model.suite import Arm, Load
from pytest_llmperf.pipeline import archive, warmup
from pytest_llmperf.pipeline.dealer import Dealer
from pytest_llmperf.pipeline.execute import Task, Trial, execute
from pytest_llmperf.pipeline.injecting import Injector
from pytest_llmperf.pipeline.servers import Server
from pytest_llmperf.workload import Material

INTERLEAVING = "ABBA"
"""Order of the turns of an in-session comparison: A is the reference, B the candidate. A linear drift cancels."""

TWIN_REQUESTS, TWIN_TOKENS = 8, 128
"""What two arms are asked to compare what they say; it costs time, one request after the other."""

REPLACEMENTS = 2
"""Invalid runs of one case that are measured again; all of them stay in the record."""


class Servers(Protocol):
    """What a case needs of the running servers (``pipeline.servers.ServerPool``)."""

    def get(self, arm: Arm, instance: str, *, generation_timeout_s: float) -> Server:
        """The running server of an arm, started where there is none."""

    def restart(self, arm: Arm, instance: str, *, generation_timeout_s: float) -> Server:
        """A fresh start of it."""

    def alone(self, arm: Arm, instance: str, *, generation_timeout_s: float) -> Server:
        """A fresh start of it, and no other server beside it."""

    def can_restart(self, arm: Arm) -> bool:
        """Whether we are the ones who start it."""


@dataclass(kw_only=True)
class CaseMeasurement:
    """The runs of one case against its servers, in order.

    Attributes:
        case: with only the selected gates.
        subject: the arm under judgement.
        next_seed: a seed that no run of this session had, for a run of that role.
        material: what its plans need from files.
        dealer: gives each run its part of them.
        recorded: the gates whose metrics an accepted baseline keeps; judged for validity like those of the case.
        injector: makes a loss in the candidate's runs, or None; see ``pipeline.injecting``.
        time_left_s: seconds that the suite may still take.
        run: how one run is made.
        trials: the runs that count, in order; ``executed`` has the ids of all, warm-up and invalid ones too.
        warm: sessions of servers that are warm.
        steady: False once a warm-up ended at a bound.
    """

    case: Case
    subject: Arm
    servers: Servers
    folder: Path
    clock: Clock
    show: Callable[[str], None]
    environment: Callable[[Server], Mapping[str, str]]
    next_seed: Callable[[Role], int]
    material: Material
    dealer: Dealer
    recorded: tuple[Gate, ...] = ()
    injector: Injector | None = None
    time_left_s: Callable[[], float] = lambda: math.inf
    run: Callable[[Task, Server, Clock, Callable[[str], None]], Trial] = execute
    trials: list[Trial] = field(default_factory=list)
    warm: set[str] = field(default_factory=set)
    steady: bool = True
    executed: list[str] = field(default_factory=list)
    _measured: int = 0
    _replacements: int = 0
    _run_s: float = 0.0  # the longest run so far, and the longest way to a warm server
    _start_s: float = 0.0

    def run_candidate(self, count: int) -> None:
        """Measure the candidate until there are ``count`` runs of it."""
        while len(self.of("candidate")) < count:
            self._measure(self.subject, "candidate")

    def interleave(self, count: int) -> None:
        """Both sides by turns until there are ``count`` runs of each, one loaded at a time.

        All of them are up and warm before the first turn, unless the case wants them apart.
        """
        if not self.case.apart:
            self._warmed(self.subject, "candidate")
            for arm in self.case.references:
                self._warmed(arm, "reference")
        while len(self.of("candidate")) < count:
            for side in INTERLEAVING:
                if side == "B":
                    self._turn(self.subject, "candidate")
                else:
                    for arm in self.case.references:
                        self._turn(arm, "reference")

    def _turn(self, arm: Arm, side: Role, role: Role | None = None) -> Trial:
        """One run of one side, of a server of its own where the sides are apart."""
        if self.case.apart:
            self._alone(arm, side)
        return self._measure(arm, side, role)

    def _alone(self, arm: Arm, side: Role) -> None:
        self.servers.alone(arm, self._instance(arm, side), generation_timeout_s=self.case.suite.stall_timeout_s)

    def _at(self, arm: Arm, side: Role) -> Server:
        """The server of one side as it is for a turn, without what is injected."""
        if self.case.apart:
            self._alone(arm, side)
        return self._warmed(arm, side)

    def affords(self, runs: int, *, fresh: bool = False) -> bool:
        """Whether the suite's budget leaves time for so many more runs, as long as the longest so far.

        ``fresh``: each with a start of its own.
        """
        return runs * (self._run_s + (self._start_s if fresh else 0.0)) <= self.time_left_s()

    def fresh_start(self) -> None:
        """Start the candidate's server afresh; where every run has a start of its own, there is nothing to do."""
        if not self.case.apart:
            self.servers.restart(self.subject, "candidate", generation_timeout_s=self.case.suite.stall_timeout_s)

    def pair(self, references: Sequence[Arm]) -> tuple[Mapping[str, Trial], Trial]:
        """One more run of each of ``references``, by name, and one of the candidate: to confirm what was seen."""
        before = {arm.name: self._turn(arm, "reference", "confirmation") for arm in references}
        return before, self._turn(self.subject, "candidate", "confirmation")

    def twins(self, reference: Arm) -> tuple[Trial, Trial]:
        """The same few requests to ``reference`` and to the candidate, one at a time; responses are kept."""
        greedy = self.case.workload
        tokens = (
            min(TWIN_TOKENS, greedy.output_tokens) if isinstance(greedy.output_tokens, int) else greedy.output_tokens
        )
        case = replace(
            self.case,
            suite=replace(self.case.suite, keep_raw="all"),
            workload=replace(greedy, requests=min(TWIN_REQUESTS, greedy.requests), output_tokens=tokens),
            load=Load(kind="concurrency", value=1),
        )
        server = self._at(reference, "reference")
        asked = self._task(case, server, "twin", 0)
        first = self.run(asked, server, self.clock, self.show)
        server = self._at(self.subject, "candidate")
        again = replace(self._task(case, server, "twin", 1), seed=asked.seed, place=asked.place)
        return first, self.run(again, server, self.clock, self.show)

    @contextmanager
    def injecting(self) -> Iterator[None]:
        """While the case is measured; nothing of an injection outlives it."""
        try:
            yield
        finally:
            if self.injector is not None:
                self.injector.close()

    def of(self, role: Role, arm: str | None = None) -> list[Trial]:
        """The runs of one role, in order; of one arm where it is named."""
        return [t for t in self.trials if t.run.role == role and (arm is None or t.run.arm == arm)]

    def findings(self) -> tuple[Finding, ...]:
        """What the runs that count, and the warm-up, have to say: of each check the first failure, else the last."""
        found: dict[str, Finding] = {}
        for trial in self.trials:
            for finding in trial.run.findings:
                if finding.check not in found or found[finding.check].status is not Status.FAIL:
                    found[finding.check] = finding
        return (*found.values(), preconditions.warmed_up(steady=self.steady)) if found else ()

    def facts(self, role: Role = "candidate", arm: str | None = None) -> Mapping[str, str]:
        """The environment of the first run of a role, with what they answered in all; {} before there is one."""
        runs = self.of(role, arm)
        return {**runs[0].run.environment, **self._answered(runs)} if runs else {}

    def mean_values(self) -> dict[str, float]:
        """Mean of the candidate's runs, for every metric that all of them have."""
        candidates = self.of("candidate")
        if not candidates:
            return {}
        shared = set.intersection(*(set(trial.values) for trial in candidates))
        return {
            name: sum(trial.values[name] for trial in candidates) / len(candidates)
            for name in METRICS
            if name in shared
        }

    def _answered(self, runs: Sequence[Trial]) -> Mapping[str, str]:
        """Of natural output: the output tokens of a run, the mean of those so far; {} where one of them is unknown."""
        if self.case.workload.output != "natural":
            return {}
        totals = [trial.run.records.total_output_tokens for trial in runs]
        known = [total for total in totals if total is not None]
        return {comparability.OUTPUT: f"{sum(known) / len(known):.1f}"} if len(known) == len(totals) else {}

    @staticmethod
    def _instance(arm: Arm, side: Role) -> str:
        return side if side == "candidate" else f"{side} {arm.name}"

    def _warmed(self, arm: Arm, side: Role) -> Server:
        begun = self.clock.monotonic_ns()
        server = self.servers.get(arm, self._instance(arm, side), generation_timeout_s=self.case.suite.stall_timeout_s)
        if server.session not in self.warm:
            self._warm_up(server)
            self.warm.add(server.session)
            self._start_s = max(self._start_s, self._since_s(begun))
        return server

    def _since_s(self, begun_ns: int) -> float:
        return (self.clock.monotonic_ns() - begun_ns) / 1e9

    def _reached(self, arm: Arm, side: Role) -> Server:
        """The warm server, for the candidate behind what is injected."""
        server = self._warmed(arm, side)
        if self.injector is None or side != "candidate":
            return server
        return self.injector.through(server, lambda behind: self._execute(self.case, behind, "warmup", 0))

    def _warm_up(self, server: Server) -> None:
        wanted = self.case.suite.warmup
        short = replace(
            self.case,
            workload=replace(self.case.workload, requests=min(wanted.requests, self.case.workload.requests)),
        )
        begun = self.clock.monotonic_ns()
        orders = iter(range(warmup.MOST_RUNS))

        def run_once() -> float:
            trial = self._execute(short, server, "warmup", next(orders))
            return trial.values.get("output_throughput", 0.0)

        self.steady &= warmup.warm_up(run_once, lambda: self._since_s(begun), wanted.at_most_s)

    def _measure(self, arm: Arm, side: Role, role: Role | None = None) -> Trial:
        """One run that counts; an invalid one is made again while there are replacements."""
        gated = {gate.metric.name for gate in (*self.case.gates, *self.recorded)}
        while True:
            server, begun = self._reached(arm, side), self.clock.monotonic_ns()
            trial = self._execute(self.case, server, role or side, self._measured)
            self._run_s = max(self._run_s, self._since_s(begun))
            self._measured += 1
            if not (trial.invalid.keys() & gated) or self._replacements == REPLACEMENTS:
                self.trials.append(trial)
                return trial
            # Kept on disk with its findings; only a valid run, or the last attempt, is judged.
            self._replacements += 1

    def _execute(self, case: Case, server: Server, role: Role, order: int) -> Trial:
        return self.run(self._task(case, server, role, order), server, self.clock, self.show)

    def _task(self, case: Case, server: Server, role: Role, order: int) -> Task:
        folder = archive.new_folder(self.folder, case, role, self.clock.utc_now())
        self.executed.append(folder.name)
        injected = {} if self.injector is None else self.injector.facts(server)
        judged = {gate.metric.name for gate in case.gates}
        return Task(
            case=case,
            gates=(*case.gates, *(gate for gate in self.recorded if gate.metric.name not in judged)),
            role=role,
            order=order,
            seed=self.next_seed(role),
            folder=folder,
            environment={**self.environment(server), **injected},
            material=self.material,
            place=self.dealer.deal(server.session, case.workload, warm_up=role == "warmup"),
        )


def measurement(trials: Sequence[Trial]) -> Measurement:
    """One value per metric and run, and what the runs' findings forbid to judge."""
    return Measurement.of_runs(
        OneRun(trial.run.session, trial.run.order, trial.values, trial.invalid) for trial in trials
    )
