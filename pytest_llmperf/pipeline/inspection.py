"""Inspection: the machine as a suite sees it, at rest and under a running engine, and what that engine says it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from pytest_llmperf.checks import conditions, effect, hardware, preconditions
from pytest_llmperf.checks.comparability import CONDITION, conditions_of
from pytest_llmperf.checks.condition import Subject
from pytest_llmperf.checks.profile import profile_of
from pytest_llmperf.engines.base import engine_of
from pytest_llmperf.errors import UnfitError
from pytest_llmperf.launchers import ports
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.finding import Finding
from pytest_llmperf.model.reading import Answer, lacking
from pytest_llmperf.model.redaction import redacted_environment
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.model.suite import Hardware, Suite
from pytest_llmperf.pipeline.servers import Server
from pytest_llmperf.telemetry import machine, processes

IDENTITY = "gpu_identity"
"""Not kept as a fact of its own: the hardware class has its parts."""


def subject_of(
    snapshot: Snapshot,
    wanted: Hardware,
    expectations: Mapping[str, Expectation],
    *,
    own: frozenset[int] = frozenset(),
    earlier: Snapshot | None = None,
    baseline: Mapping[str, str] | None = None,
) -> Subject:
    """The machine as a suite sees it: with the GPUs that it asks for alone, as many as it wants.

    A suite for any hardware uses no GPU that it knows of, and nothing is asked of those that are there.
    """
    # A GPU that is lost says no name; it counts as one of those that are asked for, so that it is reported.
    fitting = [gpu for gpu in snapshot.gpus if gpu.name.value is None or wanted.means(gpu.name.value)]
    part = snapshot.of([] if wanted.gpu is None else [gpu.uuid for gpu in fitting[: wanted.count]])
    return Subject(
        snapshot=part,
        profile=profile_of(part),
        gpus=wanted.count,
        own=own,
        earlier=earlier,
        baseline=baseline or {},
        expectations=expectations,
    )


@dataclass(kw_only=True)
class Inspection:
    """Looks at this machine before and after each start, once each; every suite judges what was seen by itself.

    Attributes:
        running: our servers, and those that we are attached to.
        read: takes a snapshot; see ``telemetry.machine.read``.
    """

    running: Callable[[], Iterable[Server]]
    read: Callable[..., Snapshot] = machine.read
    _at_rest: Snapshot | None = None
    _under: dict[str, Snapshot] = field(default_factory=dict)
    _said: dict[str, Mapping[str, str] | None] = field(default_factory=dict)

    def at_rest(self, suite: Suite, baseline: Mapping[str, str], *, fresh: bool) -> tuple[Finding, ...]:
        """The machine before a start; ``fresh`` looks at it again."""
        if self._at_rest is None:
            self._at_rest = self.read()
        elif fresh:
            # The kernel's average still has our own load in it: what counts is how busy the host was before us.
            pressure, now = self._at_rest.host.cpu_pressure_percent, self.read()
            self._at_rest = replace(now, host=replace(now.host, cpu_pressure_percent=pressure))
        subject = subject_of(
            self._at_rest, suite.hardware, suite.preconditions, own=self._own(), baseline=conditions_of(baseline)
        )
        return _strict(preconditions.at_rest(conditions.examine(subject)), suite)

    def under(self, suite: Suite, server: Server, baseline: Mapping[str, str]) -> tuple[Finding, ...]:
        """The machine under a running engine, and what is in effect there."""
        if (name := engine_of(server.arm).elsewhere(server.arm)) is not None:
            found = preconditions.elsewhere(suite.preconditions, name)
        else:
            loaded = preconditions.AT_REST if server.process is not None else ()
            seen = conditions.examine(self._subject(suite, server, baseline))
            found = (finding for finding in seen if finding.check not in loaded)
        return _strict((*found, *effect.in_effect(server.arm.expect, self._in_effect(server))), suite)

    def require(self, suite: Suite, server: Server) -> None:
        """Refuse to load a server that is not what the suite asks for.

        Raises:
            UnfitError: a required check of the machine failed, or something asked for is not in effect.
        """
        unfit = [str(finding) for finding in self.under(suite, server, {}) if finding.invalidates]
        if unfit:
            raise UnfitError(f"{server.arm.name}: {'; '.join(unfit)}")

    def facts(self, suite: Suite, server: Server) -> dict[str, str]:
        """What tells results apart: the machine under the server, its hardware class, the engine's environment."""
        if engine_of(server.arm).elsewhere(server.arm) is not None:
            return {}
        subject = self._subject(suite, server, {})
        known = {**conditions.facts(subject), **hardware.hardware_class(subject.snapshot)}
        known.pop(IDENTITY, None)
        given = redacted_environment(server.arm.env)
        variables = subject.snapshot.host.environment.value or {}
        own = [f"{name}={value}" for name, value in sorted(variables.items()) if given.get(name) != value]
        return {
            **{f"{CONDITION}{name}": value for name, value in known.items()},
            **({"environment": " ".join(own)} if own else {}),
        }

    def _subject(self, suite: Suite, server: Server, baseline: Mapping[str, str]) -> Subject:
        return subject_of(
            self._snapshot(server),
            suite.hardware,
            suite.preconditions,
            own=self._own(),
            earlier=self._at_rest,
            baseline=conditions_of(baseline),
        )

    def _snapshot(self, server: Server) -> Snapshot:
        """Read once for each start; an engine whose process is not known has no environment that could be read."""
        if server.session not in self._under:
            pid = pid_of(server)
            found = self.read(pid=pid, idle_s=0.0)
            if pid is None:
                unknown = lacking(Answer.UNKNOWN, f"the process behind {server.endpoint.url} is not known")
                found = replace(found, host=replace(found.host, environment=unknown))
            self._under[server.session] = found
        return self._under[server.session]

    def _in_effect(self, server: Server) -> Mapping[str, str] | None:
        """Asked once for each start, and only where somebody wants to know."""
        if server.arm.expect and server.session not in self._said:
            self._said[server.session] = engine_of(server.arm).in_effect(server.arm, server.ask)
        return self._said.get(server.session)

    def _own(self) -> frozenset[int]:
        """The processes of all engines that we use."""
        roots = [pid for server in self.running() if (pid := pid_of(server)) is not None]
        return frozenset(pid for root in roots for pid in processes.tree(root))


def pid_of(server: Server) -> int | None:
    """The first process of a server, or who listens at its port here; None where that cannot be told."""
    if server.process is not None:
        return server.process.pid
    if engine_of(server.arm).elsewhere(server.arm) is not None:
        return None
    parts = urlsplit(server.endpoint.url)
    return ports.listener(parts.port or (443 if parts.scheme == "https" else 80))


def _strict(findings: Iterable[Finding], suite: Suite) -> tuple[Finding, ...]:
    return tuple(preconditions.strictly(finding) if suite.strict else finding for finding in findings)
