"""Every error a user can meet, in one closed tree.

::

    LlmperfError            anything of ours
    ├── SuiteError          a suite file that cannot be used; holds all its mistakes
    ├── BaselineError       a baseline file that cannot be read or written
    ├── SavedRunError       a folder that holds no run which can be read back
    ├── UsageError          an option, fixture or CLI argument that makes no sense
    ├── UnavailableError    hardware, engine or data that is not here: the case is skipped
    ├── DataError           a data file or a tokenizer that is here and is not what the suite asks for: INVALID
    ├── CacheError          our model cache cannot be used: the machine is unfit, and the case INVALID
    ├── BusyError           somebody else measures on this machine for longer than we wait
    ├── UnfitError          the machine or the running engine is not what the suite asks for: INVALID
    ├── ClientError         the load client itself broke: nothing is known about the engine
    └── EngineError         the engine or its traffic broke: the case FAILED
        ├── StartError      it never became ready
        ├── DeathError      it was ready and its process is gone
        ├── StallError      no byte on any stream for the stall timeout
        └── SanityError     it answered, and the answers are wrong
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


def shown(path: Path) -> str:
    """A path in a message: as short as it can be from here, and still to be clicked on."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


class LlmperfError(Exception):
    """Base of all errors raised by pytest-llmperf."""


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """One mistake in a file: where it is, which key, and what would be right.

    ``override`` is the ``KEY=VALUE`` of ``--llmperf-set`` that put the value there; it stands in for the line.
    """

    file: str
    line: int
    path: str
    message: str
    override: str = ""

    def __str__(self) -> str:
        where = f"{self.file}: --llmperf-set {self.override}: " if self.override else f"{self.file}:{self.line}: "
        return f"{where}{self.path}: {self.message}" if self.path else f"{where}{self.message}"


class SuiteError(LlmperfError):
    """All mistakes of one suite file at once, in line order."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        self.mistakes = sorted(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


class BaselineError(LlmperfError):
    """A baseline file that cannot be read, or one that may not be written."""


class SavedRunError(LlmperfError):
    """The folder of a saved run that is damaged, half written, or newer than we are; the text names the file."""


class UsageError(LlmperfError):
    """An option, a marker, a fixture call or a CLI argument that cannot be obeyed."""


class UnavailableError(LlmperfError):
    """Something the case needs is not on this machine; the text says what and how to get it."""


class DataError(LlmperfError):
    """A file that requests are made from is malformed, too short, or another than the suite names."""


class CacheError(LlmperfError):
    """The cache of the models that we write cannot be read or written; nothing was started."""


class BusyError(LlmperfError):
    """Another measurement held the machine or its GPUs for longer than a lease waits; nothing was measured."""


class UnfitError(LlmperfError):
    """The machine, or what a running engine says of itself, is not what the suite requires; no load was sent."""


class BudgetError(LlmperfError):
    """A suite has taken the time that it may take in one session; what is left of it is not run."""


class ClientError(LlmperfError):
    """A worker of the load client crashed or fell silent; the run says nothing about the engine."""


class EngineError(LlmperfError):
    """The engine, or what it sent, is broken; no metric of the run may be judged.

    Args:
        message: what happened, in one line.
        cause: a word from the closed list in ``engines.base.CAUSES`` ("port", "weights", "memory" ...).
        evidence: the last lines of the engine's log, or the body of its answer.
        log: the engine's whole log, where there is one.
    """

    def __init__(self, message: str, *, cause: str = "unknown", evidence: str = "", log: Path | None = None) -> None:
        self.message = message
        self.cause = cause
        self.evidence = evidence
        self.log = log
        super().__init__(message)

    def describe(self) -> str:
        """Message, cause, evidence and log path as the text of a test failure."""
        lines = [f"{self.message} (cause: {self.cause})"]
        if self.evidence:
            lines += ["", *(f"  | {line}" for line in self.evidence.rstrip().splitlines())]
        if self.log is not None:
            lines += ["", f"engine log: {self.log}"]
        return "\n".join(lines)


class StartError(EngineError):
    """The engine did not become ready within its start timeout, or exited before."""


class DeathError(EngineError):
    """The engine's process ended while it was needed."""


class StallError(EngineError):
    """No byte arrived on any stream for the stall timeout while requests were waiting."""


class SanityError(EngineError):
    """Requests failed, or answers had the wrong number of tokens."""
