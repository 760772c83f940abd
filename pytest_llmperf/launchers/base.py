"""The contract of a launcher: a command in, a process that can be asked, read and stopped without a trace out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_llmperf.model.command import Command

RUN_ID_VARIABLE = "LLMPERF_RUN_ID"
"""Marks every process of a server, also those that left its session or changed their title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReport:
    """How a server ended.

    Attributes:
        returncode: of the first process; negative is the signal that ended it.
        killed: ids of processes that did not end by themselves within the grace and got SIGKILL.
        leftovers: ids of processes that are still there after that; () is a clean stop.
    """

    returncode: int
    killed: tuple[int, ...] = ()
    leftovers: tuple[int, ...] = ()


class Process(Protocol):
    """A started server: its first process and all that it starts."""

    @property
    def pid(self) -> int:
        """Id of the first process."""

    @property
    def log(self) -> Path:
        """Everything that it wrote to stdout and stderr."""

    def poll(self) -> int | None:
        """Exit code of the first process, negative for a signal; None while it runs."""

    def state(self) -> str:
        """The kernel's letter for the first process: "T" is stopped; "" when it is not known."""

    def tail(self, lines: int) -> str:
        """The last lines of its log."""

    def stop(self, grace_s: float) -> StopReport:
        """End it and everything it started; may be called again. Bounded by ``grace_s`` and a few seconds."""


class Launcher(Protocol):
    """One way of starting a command."""

    def launch(self, command: Command, *, folder: Path, run_id: str) -> Process:
        """Start ``command`` on its cores, log to ``folder/engine.log``, mark it with ``run_id``.

        Its standard input stays open for as long as we live, so an engine may take the end of it for our death.

        Raises:
            StartError: there is no such program, or it may not be run.
        """
