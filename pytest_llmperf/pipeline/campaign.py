"""One invocation: what its cases share (servers, stores, seeds), and a case from preparation to result."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pytest_llmperf import baseline, datasets, judge
from pytest_llmperf.checks import preconditions
from pytest_llmperf.checks.comparability import INJECTED
from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.engines.base import engine_of, losing
from pytest_llmperf.errors import EngineError, LlmperfError, StallError, UnavailableError
from pytest_llmperf.leases.host import HostLease
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.finding import Finding
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.injection import Injection
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.quarantine import excuse
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.run import Role
from pytest_llmperf.model.suite import Arm
from pytest_llmperf.pipeline.budget import Budgets
from pytest_llmperf.pipeline.dealer import Dealer
from pytest_llmperf.pipeline.facts import gather
from pytest_llmperf.pipeline.injecting import Injector
from pytest_llmperf.pipeline.inspection import Inspection
from pytest_llmperf.pipeline.measure import CaseMeasurement, measurement
from pytest_llmperf.pipeline.ongoing import Ongoing, settle
from pytest_llmperf.pipeline.servers import HUNG_GRACE_S, STOP_GRACE_S, Server, ServerPool, server_key
from pytest_llmperf.pipeline.shelf import Shelf
from pytest_llmperf.telemetry import host as hosts
from pytest_llmperf.telemetry import nvml

ENDPOINT_KEY = "LLMPERF_API_KEY"
"""Name of the variable with the API key of ``--llmperf-endpoint``."""


@dataclass(kw_only=True)
class Campaign:
    """Everything that the cases of one invocation share.

    Attributes:
        baselines: root of the baseline store.
        revision: of git that it was taken from, "" for the work tree.
        save: folder of the saved runs and of the servers' logs.
        seed: base of all prompts and arrivals.
        accept: which measured values become baselines.
        why: the reason stored with them.
        endpoint: a running server to measure instead of starting the arms' engines.
        arguments: the options that choose the same subject, values and baselines again.
        family: number of gated cases, over which p-values are adjusted.
        inject: a loss to make in every candidate; may change between cases.
        show: takes the text of the progress line.
    """

    baselines: Path
    save: Path
    seed: int
    accept: baseline.Mode
    why: str
    endpoint: str | None
    arguments: str
    family: int
    show: Callable[[str], None]
    revision: str = ""
    inject: Injection | None = None
    clock: Clock = CLOCK
    _seeds: Counter[str] = field(default_factory=Counter)

    @cached_property
    def _budgets(self) -> Budgets:
        return Budgets(self.clock)

    @cached_property
    def servers(self) -> ServerPool:
        """The engines that are running now."""
        return ServerPool(self.save / "servers", clock=self.clock, show=self.show)

    @cached_property
    def dealer(self) -> Dealer:
        """Which prompts each of them has seen."""
        return Dealer(self.seed)

    @cached_property
    def inspection(self) -> Inspection:
        """The machine before and after each start."""
        return Inspection(running=self.servers.running)

    @cached_property
    def host(self) -> hosts.Host:
        """This machine, with all of its GPUs."""
        return hosts.read(self._gpus)

    @cached_property
    def _gpus(self) -> tuple[str, ...]:
        """Asked of the driver once: facts are gathered for every run."""
        return nvml.names()

    @cached_property
    def _idle(self) -> Finding:
        """How busy this host is without us: asked before our first start, and while nobody else measures."""
        with HostLease(show=self.show):
            return preconditions.host_idle(hosts.busy_share(self.clock))

    def machine(self, case: Case, arm: Arm) -> hosts.Host:
        """The machine that an arm runs on, with the GPUs that the suite asks for."""
        if (name := engine_of(arm).elsewhere(arm)) is not None:
            return hosts.elsewhere(name)
        if case.suite.hardware.gpu is None:
            return self.host
        return hosts.read(self._fitting_gpus(case)[: case.suite.hardware.count])

    def subject(self, case: Case) -> Arm:
        """The arm under judgement: the case's own, or the endpoint that stands for it.

        An endpoint's API key is taken from ``LLMPERF_API_KEY`` where that is set, or from the variable that an arm of
        the external engine names.

        Raises:
            UsageError: a loss of acceptance is to be injected, and the engine cannot make one.
        """
        if self.endpoint is None:
            return self._harmed(case.arm)
        key = engine_of(case.arm).api_key_env(case.arm) or (ENDPOINT_KEY if os.environ.get(ENDPOINT_KEY) else None)
        options = {"url": self.endpoint} | ({} if key is None else {"api_key_env": key})
        model = replace(case.arm.model, shape={})
        return self._harmed(replace(case.arm, engine="external", model=model, options=options, args=(), env={}))

    def _harmed(self, arm: Arm) -> Arm:
        """The arm with the loss that only its engine can make; most are made in its traffic instead."""
        if self.inject is None or self.inject.kind != "acceptance":
            return arm
        return losing(arm, self.inject)

    def prepare(self, case: Case, nodeid: str, *, live: bool) -> CaseResult:
        """Check machine and engine; start the engine only when ``live``."""
        result = CaseResult(
            suite=case.suite.name,
            case=case.id,
            nodeid=nodeid,
            arm=case.arm.name,
            hardware=self.machine(case, self.subject(case)).label,
            subject=self._named(case),
            variant=case.arm.variant_of is not None or self.inject is not None or case.apart,
            arguments=self.arguments,
            quarantine=excuse(case.suite.quarantine, case.id, None, self.clock.utc_now().date()),
        )
        if reason := self.unavailable(case):
            return replace(result, skipped=reason)
        findings: tuple[Finding, ...] = ()
        try:
            self._budgets.require_time(case.suite)
            datasets.supply(case)  # before any engine starts, and before a wait for the host; what is read is kept
            findings = self._at_rest(case)
            unfit = any(finding.invalidates for finding in findings)
            if unfit or not live or case.apart:  # each run of an A/B starts a server of its own
                return replace(result, findings=(*findings, *preconditions.at_start()))
            server = self.start(case)
            under = self.inspection.under(case.suite, server, self._shelf(case).facts(case))
            findings = preconditions.latest(findings, under)
        except EngineError as error:
            return replace(result, findings=findings, failure=error.describe())
        except UnavailableError as error:
            return replace(result, findings=findings, skipped=str(error))
        except (LlmperfError, OSError) as error:
            return replace(result, findings=(*findings, preconditions.broken(str(error))))
        return replace(result, findings=(*findings, *preconditions.started(server.ready_s, server.endpoint.model)))

    def _at_rest(self, case: Case) -> tuple[Finding, ...]:
        """The host without us and, where a start follows, the machine before it."""
        subject = self.subject(case)
        if not self.servers.can_restart(subject):
            return (self._idle,)
        fresh = not any(server.key == server_key(subject) for server in self.servers.running())
        with HostLease(show=self.show):
            found = self.inspection.at_rest(case.suite, self._shelf(case).facts(case), fresh=fresh)
        return (self._idle, *found)

    def start(self, case: Case) -> Server:
        """The running server of a case's subject, started where it is not.

        Raises:
            StartError: it did not become ready.
        """
        with HostLease(show=self.show):
            return self.servers.get(self.subject(case), generation_timeout_s=case.suite.stall_timeout_s)

    def measure(self, case: Case, prepared: CaseResult, recorded: Sequence[Gate]) -> CaseResult:
        """``begin`` and ``settle`` of one case."""
        begun = self.begin(case, prepared, recorded)
        return settle([begun])[0] if isinstance(begun, Ongoing) else begun

    def begin(self, case: Case, prepared: CaseResult, recorded: Sequence[Gate]) -> Ongoing | CaseResult:
        """Measure and judge a prepared case; a failure of the engine is part of the result, never raised.

        What comes back is the result, or one that ``ongoing.settle`` gives after its reds were confirmed.

        Args:
            case: with the selected gates only.
            prepared: what ``prepare`` found.
            recorded: the gates on stored baselines that an accepted one keeps, also those that were not selected.
        """
        unfit = [str(finding) for finding in prepared.findings if finding.invalidates]
        if unfit:
            return replace(prepared, verdicts=tuple(judge.void(case.gates, "; ".join(unfit))))
        shelf = self._shelf(case)
        case = shelf.calibrated(case)
        try:
            work = self._work(case, recorded)
        except LlmperfError as error:  # a file has gone since the case was prepared
            return replace(prepared, verdicts=tuple(judge.void(case.gates, f"nothing was measured: {error}")))
        ongoing = Ongoing(
            prepared=prepared,
            work=work,
            shelf=shelf,
            discard=lambda error: self._discard(case, error),
        )
        ongoing.measure()
        return ongoing

    def measure_only(self, case: Case, runs: int) -> Measurement:
        """``runs`` runs of a case after warm-up, without a verdict.

        Raises:
            UnavailableError: a file that the prompts are made from is not on this machine.
            DataError: it is not what the suite asks for.
            EngineError: the engine did not start, died, hung or sent wrong answers.
        """
        work = self._work(case, case.gates)
        try:
            with HostLease(show=self.show):
                work.run_candidate(runs)
        except EngineError as error:
            self._discard(case, error)
            raise
        return measurement(work.of("candidate"))

    def calibrated(self, case: Case) -> Case:
        """The case with the margins and the noise that it is judged by."""
        return self._shelf(case).calibrated(case)

    def sharing(self, case: Case, others: Mapping[str, Case]) -> list[str]:
        """The names of those among ``others`` whose subject runs on the same server."""
        key = server_key(self.subject(case))
        return [name for name, other in others.items() if server_key(self.subject(other)) == key]

    def keep_for(self, cases: Sequence[Case]) -> None:
        """Stop the servers that the cases which follow do not need."""
        if "servers" in self.__dict__:
            self.servers.keep([arm for case in cases for arm in (self.subject(case), *case.references)])

    def close(self) -> None:
        """Stop all servers; may be called twice."""
        if "servers" in self.__dict__:
            self.servers.close()

    def unavailable(self, case: Case) -> str:
        """Why the case cannot be measured here, "" when it can."""
        wanted, subject = case.suite.hardware, self.subject(case)
        if wanted.gpu is not None and engine_of(subject).elsewhere(subject) is None:
            here = self._fitting_gpus(case)
            if len(here) < wanted.count:
                return f"needs {wanted.count}x {wanted.gpu}; this machine has {len(here)} (it is {self.host.label})"
        for arm in (subject, *case.references):
            if reason := engine_of(arm).unavailable(arm):
                return f"{arm.name}: {reason}"
        return ""

    def _named(self, case: Case) -> str:
        words = [f"injected {self.inject}"] if self.inject is not None else []
        if self.endpoint is not None:
            words.insert(0, f"arm {case.arm.name} at {self.endpoint}")
        elif case.apart:
            words.insert(0, f"arm {case.arm.name} against {', '.join(arm.name for arm in case.references)}")
        elif case.arm.variant_of is not None:
            words.insert(0, f"arm {case.arm.name}")
        return ", ".join(words)

    def _fitting_gpus(self, case: Case) -> tuple[str, ...]:
        return tuple(filter(case.suite.hardware.means, self._gpus))

    def _shelf(self, case: Case) -> Shelf:
        return Shelf(
            store=baseline.Store(self.baselines, self.revision),
            hardware=self.machine(case, self.subject(case)).slug,
            accept=self.accept,
            why=self.why,
            save=self.save,
            family=self.family,
        )

    def _work(self, case: Case, recorded: Sequence[Gate]) -> CaseMeasurement:
        supplied = datasets.supply(case)
        return CaseMeasurement(
            case=supplied.case,
            subject=self.subject(case),
            servers=self.servers,
            folder=self.save,
            clock=self.clock,
            show=self.show,
            environment=lambda server: self._facts(supplied.case, server),
            next_seed=self._next_seed,
            material=supplied.material,
            dealer=self.dealer,
            recorded=tuple(recorded),
            time_left_s=lambda: self._budgets.left_s(case.suite),
            injector=None if self.inject is None or self.inject.kind == "acceptance" else Injector(self.inject),
        )

    def _facts(self, case: Case, server: Server) -> Mapping[str, str]:
        """Of one run, before its load.

        Raises:
            UnfitError: the server is not what the suite requires.
        """
        self.inspection.require(case.suite, server)
        machine, pinned = self.machine(case, server.arm), bool(server.client_cores)
        endpoint = self.endpoint is not None
        facts = gather(case, server.arm, machine, server.endpoint.model, pinned=pinned, endpoint=endpoint)
        harmed = self.inject is not None and self.inject.kind == "acceptance" and server.arm == self.subject(case)
        facts = {**facts, **self.inspection.facts(case.suite, server)}
        return {**facts, INJECTED: str(self.inject)} if harmed else facts

    def _next_seed(self, role: Role) -> int:
        """No two runs of an invocation, and no run and its warm-up, send the same prompts.

        How many warm-ups there are depends on the machine, so they have a series of their own: the measured runs of
        an invocation with the same ``seed`` send the same prompts.
        """
        series = "warm-up" if role == "warmup" else "run"
        self._seeds[series] += 1
        text = f"{self.seed}/{series}/{self._seeds[series]}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")

    def _discard(self, case: Case, error: EngineError) -> None:
        """Whatever took part in a failure starts afresh for the next case; what hung will not end by itself either."""
        grace_s = HUNG_GRACE_S if isinstance(error, StallError) else STOP_GRACE_S
        for arm in (self.subject(case), *case.references):
            self.servers.discard(arm, grace_s)
