"""Servers: started, ready, shared between cases, and gone afterwards."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.engines.base import engine_of
from pytest_llmperf.errors import DeathError, StartError, UnavailableError
from pytest_llmperf.launchers.base import Process, StopReport
from pytest_llmperf.model.counters import Counters
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.suite import Arm
from pytest_llmperf.pipeline.control import NoAnswerError, SilentError, ask, headers
from pytest_llmperf.pipeline.launching import CLASSIFIED_LINES, EVIDENCE_LINES, explained, launch
from pytest_llmperf.pipeline.placement import placement
from pytest_llmperf.pipeline.readiness import Climb, exit_description
from pytest_llmperf.telemetry.prometheus import scrape

STOP_GRACE_S = 10.0
"""How long an engine may take to end by itself before it is killed."""

HUNG_GRACE_S = 1.0
"""The same for an engine that did not become ready or did not answer: it has nothing to finish."""

GENERATION_TIMEOUT_S = 300.0
"""For the first completion of a start, where the suite's stall timeout does not say less."""

ATTACH_TIMEOUT_S = 10.0
"""A server of somebody else is up or it is not: nothing is loading that would be worth waiting for."""

SCRAPE_TIMEOUT_S = 5.0
"""For the page of counters: a busy engine answers late, one that does not answer at all must not cost more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Server:
    """One running engine.

    Attributes:
        arm: what it was started for; another arm with the same key may use it too.
        endpoint: where it listens.
        process: None when somebody else runs it.
        folder: its own, with ``engine.log``.
        session: unique name of this start; runs of one session share its luck.
        key: ``server_key`` of the arm.
        ready_s: from launch to the first generated token.
        client_cores: the cores that its process was started off; () where it shares all of them, or is not ours.
    """

    arm: Arm
    endpoint: Endpoint
    process: Process | None
    folder: Path
    session: str
    key: str
    ready_s: float
    client_cores: tuple[int, ...] = ()
    clock: Clock = CLOCK

    @property
    def log(self) -> Path | None:
        """Everything that the engine said; None when somebody else runs it."""
        return None if self.process is None else self.process.log

    def alive(self) -> bool:
        """Whether its process runs.

        A server of somebody else counts as alive: its requests tell, and asking it more would be load.
        """
        return self.process is None or self.process.poll() is None

    def scrape(self) -> Counters | None:
        """Its counters now; None when it shows none.

        Raises:
            SilentError: no whole page within ``SCRAPE_TIMEOUT_S``.
        """
        return scrape(f"{self.endpoint.url}/metrics", SCRAPE_TIMEOUT_S, headers(self.endpoint.api_key_env))

    def counters(self) -> Counters | None:
        """The same; None also when the page does not come in time."""
        with suppress(SilentError):
            return self.scrape()
        return None

    def ask(self, path: str) -> Any:
        """The JSON value at a path of the server; None where there is none, or none within ``SCRAPE_TIMEOUT_S``."""
        endpoint = self.endpoint
        try:
            answer = ask("GET", f"{endpoint.url}{path}", timeout_s=SCRAPE_TIMEOUT_S, api_key_env=endpoint.api_key_env)
        except (NoAnswerError, SilentError):
            return None
        return answer.json() if answer.status == HTTPStatus.OK else None

    def death(self, when: str) -> DeathError:
        """The error that says how its process ended, with the cause by its log and the last lines of that."""
        code = None if self.process is None else self.process.poll()
        how = "ended" if code is None else exit_description(code)
        return DeathError(
            f"{self.arm.name}: the engine's process {how} {when}",
            cause=engine_of(self.arm).classify(self.tail(CLASSIFIED_LINES)) or "crash",
            evidence=self.tail(),
            log=self.log,
        )

    def tail(self, lines: int = EVIDENCE_LINES) -> str:
        """The last lines of its log, "" without one."""
        return "" if self.process is None else self.process.tail(lines)

    def log_size(self) -> int:
        """Bytes logged so far."""
        return 0 if self.log is None else self.log.stat().st_size

    def log_since(self, offset: int) -> bytes:
        """What was logged after the first ``offset`` bytes."""
        if self.log is None:
            return b""
        with self.log.open("rb") as log:
            log.seek(offset)
            return log.read()

    def stop(self, grace_s: float = STOP_GRACE_S) -> StopReport | None:
        """End the process and all that it started; None when it is not ours. May be called again."""
        return None if self.process is None else self.process.stop(grace_s)


def server_key(arm: Arm) -> str:
    """Equal keys, equal servers: a hash of launcher, engine, options, arguments, environment and model, no names."""
    engine = engine_of(arm)
    content = {
        "launcher": arm.launcher,
        "engine": arm.engine,
        "options": engine.Options.model_validate(arm.options).model_dump(mode="json"),
        "args": arm.args,
        "env": sorted(arm.env.items()),
        "model": [arm.model.id, arm.model.path, arm.model.weights],
        "shape": engine.Shape.model_validate(arm.model.shape).model_dump(mode="json"),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def start(
    arm: Arm, folder_root: Path, clock: Clock = CLOCK, *, generation_timeout_s: float = GENERATION_TIMEOUT_S
) -> Server:
    """Start the arm's engine and wait until it has generated a token.

    Bounded by ``arm.start_timeout_s`` until it is up (``ATTACH_TIMEOUT_S`` where nothing is started), and by
    ``generation_timeout_s`` for the first completion. Whatever is raised here, KeyboardInterrupt included, nothing is
    left running.

    Raises:
        UnavailableError: the engine cannot run here.
        UsageError: the arm asks for what its engine cannot do.
        StartError: it did not become ready; with cause, last lines of the log, and the log's path.
    """
    engine = engine_of(arm)
    if reason := engine.unavailable(arm):
        raise UnavailableError(f"{arm.name}: {reason}")
    session = f"{clock.utc_now():%Y%m%dT%H%M%S}-{arm.name}-{uuid.uuid4().hex[:6]}"
    folder = folder_root / session
    folder.mkdir(parents=True)
    engine.prepare(arm, folder)
    cores = placement(os.sched_getaffinity(0))
    begun = clock.monotonic_ns()
    with ExitStack() as undo:
        process = launch(engine, arm, folder, cores.engine)
        if process is not None:
            undo.callback(process.stop, STOP_GRACE_S)
        climb = Climb(
            address=lambda: engine.address(arm, folder),
            exit_code=lambda: None if process is None else process.poll(),
            model=arm.model.id,
            api_key_env=engine.api_key_env(arm),
            start_timeout_s=arm.start_timeout_s if process is not None else ATTACH_TIMEOUT_S,
            generation_timeout_s=generation_timeout_s,
            clock=clock,
        )
        try:
            url = climb.wait()
        except StartError as error:
            told = explained(error, engine, arm, process)
            if process is not None:
                process.stop(HUNG_GRACE_S)
            raise told from None
        undo.pop_all()
    return Server(
        arm=arm,
        endpoint=Endpoint(
            url=url, model=arm.model.id, api_key_env=engine.api_key_env(arm), fields=engine.request_fields(arm)
        ),
        process=process,
        folder=folder,
        session=session,
        key=server_key(arm),
        ready_s=(clock.monotonic_ns() - begun) / 1e9,
        client_cores=() if process is None else cores.client,
        clock=clock,
    )


class ServerPool:
    """The servers of one invocation. Nothing outlives it: ``close`` also runs when the interpreter ends.

    ``instance`` tells servers of one key apart, for an arm that is compared with itself.
    """

    def __init__(self, folder: Path, *, clock: Clock = CLOCK, show: Callable[[str], None] = lambda _: None) -> None:
        self._folder = folder
        self._clock = clock
        self._show = show
        self._servers: dict[tuple[str, str], Server] = {}
        atexit.register(self.close)

    def get(
        self, arm: Arm, instance: str = "candidate", *, generation_timeout_s: float = GENERATION_TIMEOUT_S
    ) -> Server:
        """The running server of this arm and instance, started if there is none.

        Raises:
            DeathError: it was running, and ended by itself since; the next call starts a new one.
            LlmperfError: see ``start``.
        """
        place = (server_key(arm), instance)
        if (running := self._servers.get(place)) is not None:
            if running.alive():
                return replace(running, arm=arm)
            death = running.death("while nothing was asked of it")
            self._drop(place)
            raise death
        self._show(f"starting {arm.name}")
        server = start(arm, self._folder, self._clock, generation_timeout_s=generation_timeout_s)
        self._servers[place] = server
        return server

    def running(self) -> list[Server]:
        """All servers that were started and not stopped."""
        return list(self._servers.values())

    def restart(
        self, arm: Arm, instance: str = "candidate", *, generation_timeout_s: float = GENERATION_TIMEOUT_S
    ) -> Server:
        """Stop the server and start it again: a new session."""
        self._drop((server_key(arm), instance))
        return self.get(arm, instance, generation_timeout_s=generation_timeout_s)

    def alone(
        self, arm: Arm, instance: str = "candidate", *, generation_timeout_s: float = GENERATION_TIMEOUT_S
    ) -> Server:
        """Stop every server, then start this one: it has the whole machine."""
        self.close()
        return self.get(arm, instance, generation_timeout_s=generation_timeout_s)

    def can_restart(self, arm: Arm) -> bool:
        """Whether the arm's engine is started by us."""
        return engine_of(arm).command(arm, self._folder) is not None

    def discard(self, arm: Arm, grace_s: float = STOP_GRACE_S) -> None:
        """Stop all servers of this arm's key."""
        key = server_key(arm)
        self._drop(*(place for place in self._servers if place[0] == key), grace_s=grace_s)

    def keep(self, arms: Iterable[Arm]) -> None:
        """Stop the servers that none of ``arms`` can use."""
        keys = {server_key(arm) for arm in arms}
        self._drop(*(place for place in self._servers if place[0] not in keys))

    def close(self) -> None:
        """Stop all servers; may be called again."""
        self._drop(*self._servers)

    def _drop(self, *places: tuple[str, str], grace_s: float = STOP_GRACE_S) -> None:
        for place in places:
            if (server := self._servers.get(place)) is None:
                continue
            report = server.stop(grace_s)
            # Forgotten only now: an interrupt during the stop leaves it to close.
            del self._servers[place]
            if report is not None and report.leftovers:
                self._show(f"{server.arm.name} left processes behind that cannot be killed: {report.leftovers}")
