"""Launching: what is started for an arm."""

from __future__ import annotations

import uuid
from pathlib import Path

from pytest_llmperf import registry
from pytest_llmperf.engines.base import Engine
from pytest_llmperf.errors import UsageError
from pytest_llmperf.launchers.base import Process
from pytest_llmperf.model.command import Command
from pytest_llmperf.model.suite import Arm


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
