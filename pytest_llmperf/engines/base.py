"""The contract of an engine adapter: a command line, where the server listens, counter names, identity.

An adapter never imports the engine. A new engine is one file with one class that satisfies ``Engine`` (checked by the
contract suite in tests/contract/) and one line in the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from pytest_llmperf import registry
from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.acceptance import Acceptance
from pytest_llmperf.model.command import Command
from pytest_llmperf.model.counters import Counters
from pytest_llmperf.model.injection import Injection
from pytest_llmperf.model.prefix_hits import PrefixHits
from pytest_llmperf.model.request_fields import RequestFields
from pytest_llmperf.model.suite import Arm

CAUSES = ("memory", "port", "weights", "arguments", "missing", "crash", "stall", "network", "unknown")
"""Why an engine failed; the closed list that ``Engine.classify`` chooses from."""


Ask = Callable[[str], Any]
"""The JSON value that a running server has at a path ("/server_info"); None where it has none."""


class EngineOptions(BaseModel):
    """Base of an adapter's options in a suite file: unknown keys are mistakes, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    VARIABLE_FIELDS: ClassVar[frozenset[str]] = frozenset()
    """The options that may hold ``${VAR}``: what differs from machine to machine (a URL, an image, a path)."""


class Engine(Protocol):
    """One kind of engine. Adapters keep no state: what must be remembered of a server lies in its folder.

    Attributes:
        Options: what an arm of this engine may say beside the common keys.
        Shape: what ``model:`` may say beside ``id``, ``path`` and ``weights``.
    """

    Options: ClassVar[type[EngineOptions]]
    Shape: ClassVar[type[EngineOptions]]

    def unavailable(self, arm: Arm) -> str | None:
        """Why this engine cannot run here and what to do about it, or None. Starts nothing, imports nothing big."""

    def prepare(self, arm: Arm, folder: Path) -> None:
        """Make what the command needs (a model file; a port, for an engine that must be told one).

        Called once before every start, before the start timeout begins; ``folder`` is the server's own and exists.
        """

    def command(self, arm: Arm, folder: Path) -> Command | None:
        """The command to launch, or None when somebody else runs the server.

        Pure: also called to show what would run. ``arm.args`` and ``arm.env`` are added by the caller.
        """

    def address(self, arm: Arm, folder: Path) -> str | None:
        """Base URL of the server, or None while it has not said yet."""

    def fixed_port(self, arm: Arm) -> int | None:
        """The port that the arm asks for, so that a failed start can name who holds it; None when any will do."""

    def elsewhere(self, arm: Arm) -> str | None:
        """Name of the other machine that the server runs on; None for this one."""

    def api_key_env(self, arm: Arm) -> str | None:
        """Name of the environment variable that holds the API key, or None."""

    def request_fields(self, arm: Arm) -> RequestFields:
        """The optional request fields that this server takes; those that count the tokens of a chunk, where it does."""

    def acceptance(self, arm: Arm, before: Counters, after: Counters) -> Acceptance | None:
        """Speculation between two scrapes, or None when the engine shows no such counters.

        Raises:
            DeathError: a counter went backwards, so the server was restarted in between.
        """

    def prefix_hits(self, arm: Arm, before: Counters, after: Counters) -> PrefixHits | None:
        """Use of the prefix cache between two scrapes, or None when the engine shows no such counters."""

    def with_less_acceptance(self, arm: Arm, loss: float) -> Arm | None:
        """An arm whose acceptance length is lower by at least ``loss`` tokens per step; None where there is none.

        For gates that have to prove that they can fail: acceptance is counted by the engine, and nothing between it
        and its client could lessen it.
        """

    def identity(self, arm: Arm) -> Mapping[str, str]:
        """Facts that tell builds apart (``engine``, ``engine_version`` ...), read without the server."""

    def in_effect(self, arm: Arm, ask: Ask) -> Mapping[str, str] | None:
        """What the running engine says of its configuration, resolved: text by its own names (nested ones dotted).

        None when it says nothing. Secrets are hidden; ``true``, ``false`` and ``none`` are lower case.
        """

    def classify(self, log: str) -> str | None:
        """The cause (one of ``CAUSES``) that the log of a dead or failing server shows, or None."""


def losing(arm: Arm, injection: Injection) -> Arm:
    """The arm with a loss of acceptance, which only its engine can make.

    Raises:
        UsageError: it cannot.
    """
    harmed = engine_of(arm).with_less_acceptance(arm, injection.share)
    if harmed is None:
        raise UsageError(f"{injection}: {arm.name}: the engine {arm.engine} cannot lose it on purpose")
    return harmed


def engine_of(arm: Arm) -> Engine:
    """The adapter of an arm.

    Raises:
        UsageError: no such engine; the text guesses which one was meant.
    """
    engine: Engine = registry.load("engine", arm.engine)()
    return engine
