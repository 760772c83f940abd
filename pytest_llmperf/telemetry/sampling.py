"""Our end of the sampler process: start, begin, end; every wait for it is bounded, and nothing of it is left behind."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from pytest_llmperf.clock import CLOCK
from pytest_llmperf.telemetry.sampler import Order

READY_TIMEOUT_S = 20.0
"""Start of the interpreter, and of NVML, which takes seconds where persistence mode is off."""

BEGIN_TIMEOUT_S = 2.0
"""For the counters of eight GPUs, which take some milliseconds each."""

END_TIMEOUT_S = 5.0
KILL_TIMEOUT_S = 2.0
"""After SIGKILL: a process that waits for a broken driver cannot end, and is left to the kernel."""


class Sampling:
    """A sampler, as a context; what goes wrong with it is kept as ``fault`` and never stops the measurement.

    Args:
        uuids: of the GPUs.
        interval_ns: from one look to the next.
        file: where the samples go.
        cores: of this machine, on which it runs; () for any.
    """

    def __init__(self, uuids: Sequence[str], interval_ns: int, file: Path, cores: Sequence[int] = ()) -> None:
        self._order = Order(file=str(file), uuids=tuple(uuids), interval_ns=interval_ns, cores=tuple(cores))
        self._log = file.with_name("sampler.log")
        self._unread = b""
        self._process: subprocess.Popen[bytes] | None = None
        self.fault = ""

    def __enter__(self) -> Self:
        """Start it; it is ready when ``window`` asks."""
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "pytest_llmperf.telemetry.sampler", self._order.text()],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C is ours to handle
                )
        except OSError as error:
            self.fault = f"the sampler did not start: {error.strerror}"
        return self

    @property
    def pid(self) -> int | None:
        """Of the process; None when there is none."""
        return None if self._process is None else self._process.pid

    @contextmanager
    def window(self) -> Iterator[None]:
        """Sample for as long as this lasts, and count just before and just after."""
        if self._hears("ready", READY_TIMEOUT_S) and self._tells("begin"):
            self._hears("begun", BEGIN_TIMEOUT_S)
        try:
            yield
        finally:
            self._tells("end")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait until it has written everything, or kill it."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            if error is not None:
                process.kill()
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.fault = self.fault or f"the sampler did not end within {END_TIMEOUT_S:g} s, and was killed"
        finally:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(KILL_TIMEOUT_S)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()
        self._explain(process.returncode, expected=error is not None)

    def _explain(self, code: int | None, *, expected: bool) -> None:
        """Its last words, where it ended with an error; else no file is left."""
        said = self._log.read_text(errors="replace").strip() if self._log.exists() else ""
        if not said:
            self._log.unlink(missing_ok=True)
        if code and not expected:
            last = said.splitlines()[-1] if said else "it said nothing"
            self.fault = self.fault or f"the sampler ended with exit code {code}: {last}"

    def _tells(self, word: str) -> bool:
        if self._process is None or self._process.stdin is None:
            return False
        try:
            self._process.stdin.write(f"{word}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def _hears(self, word: str, timeout_s: float) -> bool:
        """Whether it says ``word`` as its next line in time."""
        if self._process is None or self._process.stdout is None:
            return False
        pipe, deadline = self._process.stdout.fileno(), CLOCK.monotonic_ns() + round(timeout_s * 1e9)
        while b"\n" not in self._unread:
            left_s = (deadline - CLOCK.monotonic_ns()) / 1e9
            if left_s <= 0 or not select.select([pipe], [], [], left_s)[0]:
                self.fault = self.fault or f'the sampler did not say "{word}" within {timeout_s:g} s'
                return False
            data = os.read(pipe, 4096)
            if not data:
                return False
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode(errors="replace") == word
