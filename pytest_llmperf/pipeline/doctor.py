"""The doctor: is this machine fit to measure? One row of a table for each check; read-only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from pytest_llmperf.checks import conditions, preconditions, profile
from pytest_llmperf.clock import CLOCK
from pytest_llmperf.errors import BusyError, LlmperfError
from pytest_llmperf.leases.host import HostLease
from pytest_llmperf.model.ceiling import Ceiling
from pytest_llmperf.model.diagnosis import Diagnosis
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.model.suite import Hardware, Suite
from pytest_llmperf.pipeline.inspection import subject_of
from pytest_llmperf.pipeline.self_test import MODEST, TOKENS_PER_S, self_test
from pytest_llmperf.telemetry import host as hosts
from pytest_llmperf.telemetry import machine as machines
from pytest_llmperf.telemetry import nvml

WAIT_S = 30.0
"""How long to wait for a measurement that goes on here; at the same time both would be wrong."""


@dataclass(slots=True, kw_only=True)
class Examination:
    """What a check may use, and where it leaves what a row of the table cannot hold.

    Attributes:
        show: takes one line of progress.
        profile: the class of hardware that this machine must be of; None for what it is.
        suite: whose preconditions are asked for; None for those of the profile.
        client: what the load client carries.
        snapshot: the machine, once it was read.
    """

    host: hosts.Host
    show: Callable[[str], None]
    profile: profile.Profile | None = None
    suite: Suite | None = None
    client: list[Ceiling] = field(default_factory=list)
    snapshot: Snapshot | None = None


Check = Callable[[Examination], Iterable[Finding]]


def examine(
    show: Callable[[str], None],
    checks: Sequence[Check] | None = None,
    *,
    as_profile: str | None = None,
    suite: Suite | None = None,
) -> Diagnosis:
    """Run the checks, one after the other, while nobody else of this user measures here.

    A check that breaks is a failed row, never the end of the others.

    Args:
        show: takes one line of progress.
        checks: None for all.
        as_profile: name of the class of hardware that this machine must be of.
        suite: whose preconditions are asked for.

    Raises:
        UsageError: no profile has this name.
    """
    wanted = None if as_profile is None else profile.named(as_profile)
    host = hosts.read(nvml.names())
    examination = Examination(host=host, show=show, profile=wanted, suite=suite)
    findings: list[Finding] = []
    try:
        with HostLease(show=show, wait_s=WAIT_S):
            for check in CHECKS if checks is None else checks:
                findings += _checked(check, examination)
    except (BusyError, OSError) as error:  # somebody measures, or the lease cannot be had
        findings.append(preconditions.broken(str(error)))
    return Diagnosis(
        machine=host.label,
        node=host.node,
        findings=tuple(findings),
        client=tuple(examination.client),
        profile="" if examination.profile is None else examination.profile.name,
        snapshot=examination.snapshot,
    )


def host_idle(_: Examination) -> Iterable[Finding]:
    """How busy the CPU is without us; first of all, before we make it so."""
    return [preconditions.host_idle(hosts.busy_share(CLOCK), unfit_share=preconditions.UNFIT_SHARE)]


def machine(examination: Examination) -> Iterable[Finding]:
    """The table of checks of the machine, as the suite or its class of hardware wants it."""
    snapshot = examination.snapshot = machines.read()
    suite = examination.suite
    hardware = Hardware(gpu="", count=len(snapshot.gpus)) if suite is None else suite.hardware
    expectations = {} if suite is None else suite.preconditions
    subject = subject_of(snapshot, hardware, expectations)
    fits = []
    if examination.profile is None:
        examination.profile = subject.profile
    else:
        fits = [preconditions.profile_fits(examination.profile, subject.profile)]
        subject = replace(subject, profile=examination.profile)
    found = (*fits, *conditions.examine(subject))
    return map(preconditions.strictly, found) if suite is not None and suite.strict else found


def client(examination: Examination) -> Iterable[Finding]:
    """What the load client carries here."""
    examination.client.extend(self_test(examination.host.cores, examination.show))
    return [client_finding(ceiling) for ceiling in examination.client]


CHECKS: tuple[Check, ...] = (host_idle, machine, client)
"""The rows, in order; those that load the machine come last."""


def client_finding(ceiling: Ceiling) -> Finding:
    """What a ceiling means. One worker must carry a modest load; that several of them do not carry more is shown."""
    best, failed = ceiling.best, ceiling.failed
    return Finding(
        check=f"client, {ceiling.workers} worker{'s' * (ceiling.workers != 1)}",
        status=Status.PASS if best is not None and best.streams >= MODEST else Status.FAIL,
        policy="require" if ceiling.workers == 1 else "warn",
        value=_carried(ceiling),
        expected=f"at least {MODEST} streams at {TOKENS_PER_S} tok/s",
        evidence="" if failed is None else f"{failed.streams} streams: {failed.why}",
        remedy="let nothing else run meanwhile, or measure from a machine with more cores",
    )


def _checked(check: Check, examination: Examination) -> list[Finding]:
    try:
        return list(check(examination))
    except (LlmperfError, OSError) as error:
        what, *more = str(error).splitlines() or [type(error).__name__]
        value = f"could not be checked: {what}" + (f" ({more[-1]})" if more else "")
        evidence = "\n".join(more)
        return [Finding(check=check.__name__, status=Status.FAIL, policy="require", value=value, evidence=evidence)]


def _carried(ceiling: Ceiling) -> str:
    best, tails = ceiling.best, ceiling.best_tails
    if best is None:
        return "no load that was tried was valid" if ceiling.steps else "not tried: there was no time left"
    more = " or more" if ceiling.bounded else ""
    percentiles = "at none that was tried" if tails is None else f"up to {tails.streams}"
    return (
        f"{best.streams}{more} streams at {TOKENS_PER_S} tok/s are valid ({best.chunks_per_s:.0f} chunks/s, lag p50"
        f" {best.client.lag_p50_ms:.2f}, p99 {best.client.lag_p99_ms:.2f} ms), percentiles of ITL {percentiles}"
    )
