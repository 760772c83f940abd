"""One case, measured and judged: warm-up, runs, verdicts, confirmation of what looks red."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_llmperf import judge
from pytest_llmperf.checks import preconditions
from pytest_llmperf.clock import Clock
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement, Observation
from pytest_llmperf.model.run import Role
from pytest_llmperf.model.suite import Arm
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.pipeline import archive, warmup
from pytest_llmperf.pipeline.dealer import Dealer
from pytest_llmperf.pipeline.execute import Task, Trial, execute, run_seed
from pytest_llmperf.pipeline.servers import Server, ServerPool
from pytest_llmperf.workload import Material

INTERLEAVING = "ABBAABBA"
"""Order of an in-session comparison: A is the reference, B the candidate. A linear drift of the machine cancels."""

REPLACEMENTS = 2
"""Invalid runs of one case that are measured again; all of them stay in the record."""

CANDIDATE: Role = "candidate"
REFERENCE: Role = "reference"


@dataclass(kw_only=True)
class CaseMeasurement:
    """The runs of one case against its servers, in order.

    Attributes:
        case: with only the selected gates.
        subject: the arm under judgement.
        material: what its plans need from files.
        dealer: gives each run its part of them.
        recorded: the gates whose metrics an accepted baseline keeps.
        trials: the runs that count, in order; ``executed`` has the ids of all, warm-up and invalid ones too.
        warm: sessions of servers that are warm.
        steady: False once a warm-up ended at a bound.
    """

    case: Case
    subject: Arm
    servers: ServerPool
    folder: Path
    seed: int
    clock: Clock
    show: Callable[[str], None]
    environment: Callable[[Server], Mapping[str, str]]
    material: Material
    dealer: Dealer
    recorded: tuple[Gate, ...] = ()
    trials: list[Trial] = field(default_factory=list)
    warm: set[str] = field(default_factory=set)
    steady: bool = True
    executed: list[str] = field(default_factory=list)
    _replacements: int = 0

    def run_candidate(self, count: int) -> None:
        """Measure the candidate until there are ``count`` runs of it."""
        while len(self.of(CANDIDATE)) < count:
            self._run(self._candidate(), CANDIDATE)

    def interleave(self) -> None:
        """Both sides by turns, one loaded at a time."""
        for side in INTERLEAVING:
            if side == "B":
                self._run(self._candidate(), CANDIDATE)
            else:
                for arm in self.case.references:
                    self._run(self._warmed(arm, REFERENCE), REFERENCE)

    def confirm(self, verdicts: Sequence[Verdict], gates: Sequence[Gate]) -> list[Verdict]:
        """Measure once more after a fresh start of the candidate; keep only the reds that are seen again."""
        if not any(verdict.word is Word.REGRESSED for verdict in verdicts):
            return list(verdicts)
        if not self.servers.can_restart(self.subject):
            return [judge.unconfirmed(v) if v.word is Word.REGRESSED else v for v in verdicts]
        fresh_reference = {}
        if any(gate.reference for gate, verdict in self._red(gates, verdicts)):
            for arm in self.case.references:
                fresh_reference[arm.name] = self._run(self._warmed(arm, REFERENCE), "confirmation")
        self.servers.restart(self.subject, generation_timeout_s=self.case.suite.stall_timeout_s)
        fresh = self._run(self._candidate(), "confirmation")
        confirmed = list(verdicts)
        for i, (gate, verdict) in enumerate(zip(gates, verdicts, strict=True)):
            if verdict.word is not Word.REGRESSED:
                continue
            name = gate.metric.name
            before = fresh_reference[gate.reference].values.get(name) if gate.reference else verdict.reference
            after = fresh.values.get(name)
            if before is None or after is None:
                confirmed[i] = judge.unconfirmed(verdict, "the run after a fresh start has no value")
            else:
                confirmed[i] = judge.confirm(verdict, gate, before, after)
        return confirmed

    def of(self, role: Role, arm: str | None = None) -> list[Trial]:
        """The runs of one role, in order; of one arm where it is named."""
        return [t for t in self.trials if t.run.role == role and (arm is None or t.run.arm == arm)]

    def invalid_metrics(self) -> dict[str, str]:
        """The metrics that may not be judged, with the finding that says so."""
        invalid: dict[str, str] = {}
        for trial in self.trials:
            for finding in trial.run.findings:
                if finding.invalidates:
                    names = trial.values.keys() if finding.metrics is None else finding.metrics
                    invalid |= dict.fromkeys(names, f"{finding} (run {trial.run.id})")
        return invalid

    def findings(self) -> tuple[Finding, ...]:
        """What the runs that count, and the warm-up, have to say: of each check the first failure, else the last."""
        found: dict[str, Finding] = {}
        for trial in self.trials:
            for finding in trial.run.findings:
                if finding.check not in found or found[finding.check].status is not Status.FAIL:
                    found[finding.check] = finding
        return (*found.values(), preconditions.warmed_up(steady=self.steady)) if found else ()

    def facts(self) -> Mapping[str, str]:
        """The environment of the candidate's first run; {} before there is one."""
        candidates = self.of(CANDIDATE)
        return candidates[0].run.environment if candidates else {}

    def mean_values(self) -> dict[str, float]:
        """Mean of the candidate's runs, for every metric that all of them have."""
        candidates = self.of(CANDIDATE)
        if not candidates:
            return {}
        shared = set.intersection(*(set(trial.values) for trial in candidates))
        return {
            name: sum(trial.values[name] for trial in candidates) / len(candidates)
            for name in METRICS
            if name in shared
        }

    @staticmethod
    def _red(gates: Iterable[Gate], verdicts: Iterable[Verdict]) -> list[tuple[Gate, Verdict]]:
        return [(g, v) for g, v in zip(gates, verdicts, strict=True) if v.word is Word.REGRESSED]

    def _candidate(self) -> Server:
        return self._warmed(self.subject, CANDIDATE)

    def _warmed(self, arm: Arm, instance: Role) -> Server:
        server = self.servers.get(arm, instance=instance, generation_timeout_s=self.case.suite.stall_timeout_s)
        if server.session not in self.warm:
            self._warm_up(server)
            self.warm.add(server.session)
        return server

    def _warm_up(self, server: Server) -> None:
        wanted = self.case.suite.warmup
        short = replace(
            self.case,
            workload=replace(self.case.workload, requests=min(wanted.requests, self.case.workload.requests)),
        )
        start = self.clock.monotonic_ns()
        orders = iter(range(warmup.MOST_RUNS))

        def run_once() -> float:
            trial = self._execute(short, server, "warmup", next(orders))
            return trial.values.get("output_throughput", 0.0)

        def elapsed_s() -> float:
            return (self.clock.monotonic_ns() - start) / 1e9

        self.steady &= warmup.warm_up(run_once, elapsed_s, wanted.at_most_s)

    def _run(self, server: Server, role: Role) -> Trial:
        gated = {gate.metric.name for gate in self.case.gates}
        while True:
            trial = self._execute(self.case, server, role, sum(t.run.role != "warmup" for t in self.trials))
            if not (trial.invalid_metrics & gated) or self._replacements == REPLACEMENTS:
                self.trials.append(trial)
                return trial
            # Kept on disk with its findings; only a valid run, or the last attempt, is judged.
            self._replacements += 1

    def _execute(self, case: Case, server: Server, role: Role, order: int) -> Trial:
        folder = archive.new_folder(self.folder, case, role, self.clock.utc_now())
        task = Task(
            case=case,
            role=role,
            order=order,
            seed=run_seed(self.seed, case, len(self.executed)),
            folder=folder,
            environment=self.environment(server),
            material=self.material,
            place=self.dealer.deal(server.session, case.workload, warm_up=role == "warmup"),
        )
        self.executed.append(folder.name)
        return execute(task, server, self.clock, self.show)


def measurement(trials: Sequence[Trial]) -> Measurement:
    """One value per metric and run."""
    samples: dict[str, list[Observation]] = {}
    for trial in trials:
        for name, value in trial.values.items():
            samples.setdefault(name, []).append(Observation(value, trial.run.session, trial.run.order))
    return Measurement({name: tuple(values) for name, values in samples.items()})
