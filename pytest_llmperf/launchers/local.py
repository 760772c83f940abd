"""The local launcher: a process of this machine, in a session of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.errors import StartError
from pytest_llmperf.launchers import family
from pytest_llmperf.launchers.base import RUN_ID_VARIABLE, StopReport
from pytest_llmperf.model.command import Command

KILL_TIMEOUT_S = 5.0
"""How long to wait for the kernel to take away what got SIGKILL; a process in uninterruptible I/O stays longer."""

ORPHAN_GRACE_S = 1.0
"""How long the children of a dead process may take to notice."""

_POLL_S = 0.02
_TAIL_BYTES = 256 * 1024


class LocalLauncher:
    """Starts processes here."""

    def __init__(self, clock: Clock = CLOCK) -> None:
        self._clock = clock

    def launch(self, command: Command, *, folder: Path, run_id: str) -> LocalProcess:
        """See ``launchers.base.Launcher``."""
        log = folder / "engine.log"
        environment = {**os.environ, **command.env, RUN_ID_VARIABLE: run_id}
        try:
            with log.open("ab") as output, _only_on(command.cores):
                popen = subprocess.Popen(
                    command.argv,
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise StartError(f"cannot start {command.argv[0]}: {error.strerror}", cause="missing") from None
        return LocalProcess(popen, log, run_id, self._clock)


@contextmanager
def _only_on(cores: tuple[int, ...]) -> Iterator[None]:
    """What this thread starts meanwhile begins on ``cores`` and has no others; () for no difference."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or own)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


class LocalProcess:
    """One launched process and its family."""

    def __init__(self, popen: subprocess.Popen[bytes], log: Path, run_id: str, clock: Clock) -> None:
        self._popen = popen
        self._log = log
        self._mark = f"{RUN_ID_VARIABLE}={run_id}"
        self._clock = clock
        self._report: StopReport | None = None

    @property
    def pid(self) -> int:
        """Id of the first process, of its group and of its session."""
        return self._popen.pid

    @property
    def log(self) -> Path:
        """``folder/engine.log``."""
        return self._log

    def poll(self) -> int | None:
        """Exit code or None; leaves an ended process unreaped, so that its id stays taken until ``stop``."""
        if self._popen.returncode is not None:
            return self._popen.returncode
        try:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            # SIGCHLD is ignored here (inherited, say from a shell that traps it): the kernel has taken the process away
            # with its exit code. 0 is what subprocess says then.
            self._popen.returncode = 0
            return 0
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def state(self) -> str:
        """Of the first process, as /proc says it: R, S, D, T (stopped), Z ...; "" when it cannot be read."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return ""

    def tail(self, lines: int) -> str:
        """The last ``lines`` lines of the log, of its last 256 KiB at most."""
        with self._log.open("rb") as log:
            log.seek(max(0, self._log.stat().st_size - _TAIL_BYTES))
            text = log.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def stop(self, grace_s: float) -> StopReport:
        """SIGTERM to the first process; after the grace, SIGKILL to whoever of the family is left.

        A process that is stopped (SIGSTOP, a debugger) gets SIGCONT too: it would see no SIGTERM before it goes on.

        Orphans of a process that died by itself get ``ORPHAN_GRACE_S`` at most: nobody is there to end them.
        """
        # Once reaped, the session's id may be somebody else's: never look for it again.
        if self._report is None:
            self._report = self._stop(grace_s)
        return self._report

    def _stop(self, grace_s: float) -> StopReport:
        killed: set[int] = set()
        if self.poll() is None:
            self._popen.send_signal(signal.SIGTERM)
            self._popen.send_signal(signal.SIGCONT)
        else:
            grace_s = min(grace_s, ORPHAN_GRACE_S)
        self._wait_until_gone(grace_s)
        deadline = self._clock.monotonic_ns() + KILL_TIMEOUT_S * 1e9
        while (left := self._members()) and self._clock.monotonic_ns() < deadline:
            killed |= {pid for pid in left if family.kill(pid, self.pid, self._mark)}
            self._wait_until_gone(0.1)
        if self._popen.stdin is not None:
            self._popen.stdin.close()
        code = self.poll()
        if code is not None:
            self._popen.wait()
        return StopReport(
            returncode=-signal.SIGKILL if code is None else code,
            killed=tuple(sorted(killed)),
            leftovers=tuple(sorted(left)),
        )

    def _members(self) -> frozenset[int]:
        return family.members(self.pid, self._mark)

    def _wait_until_gone(self, seconds: float) -> None:
        deadline = self._clock.monotonic_ns() + seconds * 1e9
        while self._members() and self._clock.monotonic_ns() < deadline:
            self._clock.sleep(_POLL_S)
