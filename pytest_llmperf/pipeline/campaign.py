"""One invocation: what its cases share (servers, stores, seeds), and a case from preparation to result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pytest_llmperf import baseline, datasets, judge, registry
from pytest_llmperf.checks import preconditions
from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.engines.base import Engine
from pytest_llmperf.errors import EngineError, LlmperfError, UnavailableError
from pytest_llmperf.leases import gpu
from pytest_llmperf.leases.host import HostLease
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.suite import Arm
from pytest_llmperf.pipeline.dealer import Dealer
from pytest_llmperf.pipeline.facts import gather
from pytest_llmperf.pipeline.judging import Judged, Shelf, judge_case
from pytest_llmperf.pipeline.measure import CaseMeasurement, measurement
from pytest_llmperf.pipeline.servers import Server, ServerPool
from pytest_llmperf.telemetry import host as hosts


@dataclass(kw_only=True)
class Campaign:
    """Everything that the cases of one invocation share.

    Attributes:
        baselines: root of the baseline store.
        save: folder of the saved runs and of the servers' logs.
        seed: base of all prompts and arrivals.
        accept: which measured values become baselines.
        why: the reason stored with them.
        endpoint: a running server to measure instead of starting the arms' engines.
        family: number of gated cases, over which p-values are adjusted.
        show: takes the text of the progress line.
    """

    baselines: Path
    save: Path
    seed: int
    accept: baseline.Mode
    why: str
    endpoint: str | None
    family: int
    show: Callable[[str], None]
    clock: Clock = CLOCK

    @cached_property
    def servers(self) -> ServerPool:
        """The engines that are running now."""
        return ServerPool(self.save / "servers", clock=self.clock, show=self.show)

    @cached_property
    def dealer(self) -> Dealer:
        """Which prompts each of them has seen."""
        return Dealer(self.seed)

    @cached_property
    def host(self) -> hosts.Host:
        """This machine."""
        return hosts.read(gpu.names())

    @cached_property
    def shelf(self) -> Shelf:
        """The committed baselines."""
        return Shelf(
            store=baseline.Store(self.baselines),
            hardware=self.host.slug,
            accept=self.accept,
            why=self.why,
            family=self.family,
        )

    def subject(self, case: Case) -> Arm:
        """The arm under judgement: the case's own, or the endpoint that stands for it."""
        if self.endpoint is None:
            return case.arm
        return replace(case.arm, engine="external", options={"url": self.endpoint}, args=(), env={})

    def prepare(self, case: Case, nodeid: str, *, live: bool) -> CaseResult:
        """Check machine and engine; start the engine only when ``live``."""
        result = CaseResult(
            suite=case.suite.name, case=case.id, nodeid=nodeid, arm=case.arm.name, hardware=self.host.label
        )
        if reason := self._unavailable(case):
            return replace(result, skipped=reason)
        findings = preconditions.before_start(hosts.busy_share(self.clock))
        try:
            datasets.supply(case)  # before any engine starts; what is read is kept
            if not live:
                return replace(result, findings=(*findings, *preconditions.at_start()))
            server = self.start(case)
        except EngineError as error:
            return replace(result, findings=findings, failure=error.describe())
        except UnavailableError as error:
            return replace(result, findings=findings, skipped=str(error))
        except (LlmperfError, OSError) as error:
            return replace(result, findings=(*findings, preconditions.broken(str(error))))
        return replace(result, findings=(*findings, *preconditions.started(server.ready_s, server.endpoint.model)))

    def start(self, case: Case) -> Server:
        """The running server of a case's subject, started where it is not.

        Raises:
            StartError: it did not become ready.
        """
        with HostLease(show=self.show):
            return self.servers.get(self.subject(case), generation_timeout_s=case.suite.stall_timeout_s)

    def measure(self, case: Case, prepared: CaseResult, recorded: Sequence[Gate]) -> CaseResult:
        """Measure and judge a prepared case; a failure of the engine is part of the result, never raised.

        Args:
            case: with the selected gates only.
            prepared: what ``prepare`` found.
            recorded: the gates on stored baselines that an accepted one keeps, also those that were not selected.
        """
        unfit = [str(finding) for finding in prepared.findings if finding.invalidates]
        if unfit:
            return replace(prepared, verdicts=tuple(judge.void(case.gates, "; ".join(unfit))))
        start = self.clock.monotonic_ns()
        try:
            work = self._work(case, recorded)
        except LlmperfError as error:  # a file has gone since the case was prepared
            return replace(prepared, verdicts=tuple(judge.void(case.gates, f"nothing was measured: {error}")))
        judged, failure = Judged((), {}), ""
        try:
            with HostLease(show=self.show):
                judged = judge_case(work.case, work, self.shelf, prepared, self.clock)
        except EngineError as error:
            failure = error.describe()
            self.servers.discard(self.subject(case))
        except (LlmperfError, OSError) as error:
            judged = Judged(tuple(judge.void(case.gates, f"nothing was judged: {error}")), {})
        return replace(
            prepared,
            verdicts=judged.verdicts,
            changed=judged.changed,
            failure=failure,
            metrics=work.mean_values(),
            findings=(*prepared.findings, *work.findings()),
            environment=work.facts(),
            runs=tuple(work.executed),
            elapsed_s=(self.clock.monotonic_ns() - start) / 1e9,
        )

    def measure_only(self, case: Case, runs: int) -> Measurement:
        """``runs`` runs of a case after warm-up, without a verdict.

        Raises:
            EngineError: the engine did not start, died, hung or sent wrong answers.
        """
        work = self._work(case, ())
        with HostLease(show=self.show):
            work.run_candidate(runs)
        return measurement(work.of("candidate"))

    def keep_for(self, cases: Sequence[Case]) -> None:
        """Stop the servers that the cases which follow do not need."""
        if "servers" in self.__dict__:
            self.servers.keep([arm for case in cases for arm in (self.subject(case), *case.references)])

    def close(self) -> None:
        """Stop all servers; may be called twice."""
        if "servers" in self.__dict__:
            self.servers.close()

    def _work(self, case: Case, recorded: Sequence[Gate]) -> CaseMeasurement:
        supplied = datasets.supply(case)
        return CaseMeasurement(
            case=supplied.case,
            subject=self.subject(case),
            servers=self.servers,
            folder=self.save,
            seed=self.seed,
            clock=self.clock,
            show=self.show,
            environment=lambda server: gather(supplied.case, server.arm, self.host, server.endpoint.model),
            material=supplied.material,
            dealer=self.dealer,
            recorded=tuple(recorded),
        )

    def _unavailable(self, case: Case) -> str:
        """Why the case cannot be measured here, "" when it can."""
        wanted = case.suite.hardware
        if wanted.gpu is not None:
            here = [name for name in gpu.names() if wanted.gpu.lower() in name.lower()]
            if len(here) < wanted.count:
                return f"needs {wanted.count}x {wanted.gpu}; this machine has {len(here)} (it is {self.host.label})"
        for arm in (self.subject(case), *case.references):
            engine: Engine = registry.load("engine", arm.engine)()
            if reason := engine.unavailable(arm):
                return f"{arm.name}: {reason}"
        return ""
