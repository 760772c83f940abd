"""Preconditions: is the machine fit to measure, and is the engine what the suite asks for?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from pytest_llmperf.checks.conditions import VARIABLE
from pytest_llmperf.checks.profile import Profile
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.finding import Finding, Status

BUSY_SHARE = 0.2
"""More than this share of the CPU in use before anything of ours runs is a neighbour worth naming."""

UNFIT_SHARE = 0.5
"""Beyond it a machine is not fit: the client shares every second moment of its CPUs with somebody."""

OF_THE_ENGINE = frozenset({"environment", "harmful_environment", "pdl", "rank_memory"})
"""Checks of the machine that ask for the running engine's process."""

AT_REST = frozenset({"cpu_pressure", "idle_utilisation", "thermal_headroom"})
"""Checks that an engine which has just loaded its model would fail by itself."""

_KNOWN = frozenset({Status.PASS, Status.FAIL})

LIVE_CHECKS = ("engine_ready", "model_served")
"""Checks that need the running engine."""


def at_start() -> tuple[Finding, ...]:
    """Place-holders for the checks that need the engine, where none was started."""
    return tuple(Finding(check=name, status=Status.AT_START, policy="require") for name in LIVE_CHECKS)


def started(ready_s: float, model_id: str) -> tuple[Finding, ...]:
    """What a ready engine has shown: it answered, and with tokens of the model that was asked for."""
    return (
        Finding(
            check="engine_ready",
            status=Status.PASS,
            policy="require",
            value=f"after {ready_s:.1f} s",
            evidence="a completion came back with tokens",
        ),
        Finding(check="model_served", status=Status.PASS, policy="require", value=model_id, evidence="GET /v1/models"),
    )


def broken(reason: str) -> Finding:
    """What kept us from starting the engine, and is not the engine: no disk, a host that is busy, a bad option."""
    return Finding(check="session", status=Status.FAIL, policy="require", value=reason)


def warmed_up(*, steady: bool) -> Finding:
    """Whether the warm-up ended because the engine was steady, or because a bound came first."""
    return Finding(
        check="warm_up",
        status=Status.PASS if steady else Status.FAIL,
        policy="warn",
        value="steady" if steady else "still getting faster",
        expected="steady",
        remedy="give it more time: warmup.at_most and warmup.requests in the suite",
    )


def at_rest(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings of a machine before the engine is started: what is the engine's own shows once it runs."""
    for finding in findings:
        if finding.check in OF_THE_ENGINE or finding.check.startswith(VARIABLE):
            yield Finding(check=finding.check, status=Status.AT_START, policy=finding.policy)
        else:
            yield finding


def latest(before: Iterable[Finding], after: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings of one machine, before the engine was started and since, in order.

    What holds now counts, but for what can only be known of a machine at rest.
    """
    found = {finding.check: finding for finding in before}
    for finding in after:
        earlier = found.get(finding.check)
        if earlier is None or earlier.status not in _KNOWN or finding.status in _KNOWN:
            found[finding.check] = finding
    return tuple(found.values())


def elsewhere(expectations: Mapping[str, Expectation], name: str) -> Iterator[Finding]:
    """What a suite expects of a machine that cannot be looked at, because it is another one."""
    for check, expectation in expectations.items():
        if expectation.policy != "ignore":
            yield Finding(
                check=check,
                status=Status.UNKNOWN,
                policy=expectation.policy or "require",
                value=f"the engine runs at {name}",
                expected=expectation.value or "",
                remedy="run llmperf doctor there",
            )


def strictly(finding: Finding) -> Finding:
    """The finding as a strict suite takes it: what is required and could not be read is a failure."""
    if not finding.unverified:
        return finding
    value = finding.value if finding.value == str(finding.status) else f"{finding.value} ({finding.status})"
    return replace(finding, status=Status.FAIL, value=f"{value}: unverified, and the suite is strict")


def profile_fits(wanted: Profile, found: Profile) -> Finding:
    """Whether the machine is of the class of hardware that was asked for."""
    fits = wanted.name == found.name or (wanted.product == "" and found.product is not None)
    return Finding(
        check="profile",
        status=Status.PASS if fits else Status.FAIL,
        policy="require",
        value=found.name,
        expected=wanted.name,
        evidence="the names of its GPUs",
    )


def host_idle(busy_share: float | None, *, unfit_share: float = 1.0) -> Finding:
    """Whether somebody else uses the CPU, before anything of ours does; beyond ``unfit_share`` it is required."""
    if busy_share is None:
        return Finding(check="host_idle", status=Status.UNSUPPORTED, policy="warn", evidence="/proc/stat")
    return Finding(
        check="host_idle",
        status=Status.FAIL if busy_share > BUSY_SHARE else Status.PASS,
        policy="require" if busy_share > unfit_share else "warn",
        value=f"{busy_share:.0%} of the CPU in use",
        expected=f"at most {BUSY_SHARE:.0%}",
        evidence="/proc/stat",
        remedy="find what else is running: results on a busy host are noisy",
    )
