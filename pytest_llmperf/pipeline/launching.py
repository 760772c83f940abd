"""Launching: what is started for an arm, and why it did not come up."""

from __future__ import annotations

import uuid
from pathlib import Path

from pytest_llmperf import registry
from pytest_llmperf.engines.base import Engine
from pytest_llmperf.errors import StartError, UsageError
from pytest_llmperf.launchers import ports
from pytest_llmperf.launchers.base import Process
from pytest_llmperf.model.command import Command
from pytest_llmperf.model.suite import Arm

EVIDENCE_LINES = 20
CLASSIFIED_LINES = 2000
"""Of an engine's log: those that are shown, and those that its adapter looks through for a cause."""


def command_of(engine: Engine, arm: Arm, folder: Path, cores: tuple[int, ...] = ()) -> Command | None:
    """What is launched: the adapter's command with the arm's own arguments and environment; None for no process.

    Raises:
        UsageError: the arm has arguments or an environment, and there is no process to give them to.
    """
    command = engine.command(arm, folder)
    if command is not None:
        return Command(argv=(*command.argv, *arm.args), env={**command.env, **arm.env}, cores=cores)
    if arm.args or arm.env:
        raise UsageError(f"{arm.name}: args and env have no effect, {arm.engine} starts no process")
    return None


def launch(engine: Engine, arm: Arm, folder: Path, cores: tuple[int, ...]) -> Process | None:
    """The started process, on ``cores`` where there are any; None where somebody else runs the server."""
    command = command_of(engine, arm, folder, cores)
    if command is None:
        return None
    launcher = registry.load("launcher", arm.launcher)()
    process: Process = launcher.launch(command, folder=folder, run_id=uuid.uuid4().hex)
    return process


def explained(error: StartError, engine: Engine, arm: Arm, process: Process | None) -> StartError:
    """The error with the arm's name, the cause by the engine's log, and its last lines."""
    log = "" if process is None else process.tail(CLASSIFIED_LINES)
    cause = error.cause
    if cause == "unknown":
        died = process is not None and process.poll() is not None
        cause = engine.classify(log) or ("crash" if died else "network" if process is None else "unknown")
    message = f"{arm.name}: {error.message}"
    port = engine.fixed_port(arm)
    if cause == "port" and port is not None:
        message += f"; port {port} is held by {ports.holder(port) or 'nobody any more'}"
    if process is not None and process.state() == "T":
        message += "; its process is stopped (state T), by SIGSTOP or a debugger"
    last = "\n".join(log.splitlines()[-EVIDENCE_LINES:])
    return StartError(
        message,
        cause=cause,
        evidence="\n".join(part for part in (error.evidence, last) if part),
        log=None if process is None else process.log,
    )
