"""The fleet: the driver's end of its worker processes."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from pytest_llmperf.clock import CLOCK
from pytest_llmperf.errors import ClientError
from pytest_llmperf.load import wire
from pytest_llmperf.load.job import Job

READY_TIMEOUT_S = 60.0
"""Start of the interpreter, rendering and connecting; seconds, unless the machine is on its knees."""
BEAT_TIMEOUT_S = 15.0
"""A worker beats five times a second; one that is silent this long is stuck."""
STOP_TIMEOUT_S = 2.0
SAVE_TIMEOUT_S = 60.0
SAVE_S_PER_CHUNK = 100e-6
"""On top, for each chunk read: parsing one takes 5 to 20 us."""
EXIT_TIMEOUT_S = 5.0

_READ = 65536
_LOG_TAIL = 20


class WorkerProcess:
    """One worker and what it has said so far."""

    def __init__(self, job: Job, job_file: Path, log: Path) -> None:
        self.job = job
        self.log = log
        self._job_file = job_file
        self._unread = b""
        self.ready = self.stopping = self.saved = False
        self.beat: wire.Beat | None = None
        self.heard_ns = CLOCK.monotonic_ns()
        job.write(job_file)
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pytest_llmperf.load.worker", str(job_file)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,  # Ctrl-C is the driver's to handle
            )
        os.set_blocking(self.stdout.fileno(), False)

    @property
    def stdout(self) -> IO[bytes]:
        """The pipe that the worker speaks into."""
        assert self.process.stdout is not None  # noqa: S101 (for the type checker)
        return self.process.stdout

    @property
    def exited(self) -> bool:
        """Whether the process is gone."""
        return self.process.poll() is not None

    def send(self, message: wire.Message) -> None:
        """Down the pipe; a worker that is gone hears nothing."""
        assert self.process.stdin is not None  # noqa: S101 (for the type checker)
        with suppress(BrokenPipeError):
            self.process.stdin.write(wire.encode(message))
            self.process.stdin.flush()

    def read(self) -> bool:
        """Take in what it has said; False once it cannot say any more."""
        try:
            data = os.read(self.stdout.fileno(), _READ)
        except BlockingIOError:
            return True
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._hear(wire.decode(line))
        return bool(data)

    def _hear(self, message: wire.Message) -> None:
        self.heard_ns = CLOCK.monotonic_ns()
        match message:
            case wire.Ready():
                self.ready = True
            case wire.Beat():
                self.beat = message
            case wire.Stopping():
                self.stopping = True
            case wire.Saved():
                self.stopping = self.saved = True

    def remove(self) -> None:
        """Kill it if it still runs, and delete what only it needed."""
        if not self.exited:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self._job_file.unlink(missing_ok=True)
        if self.log.exists() and not self.log.stat().st_size:
            self.log.unlink()


class Fleet:
    """All workers of one drive; a context manager that leaves no process behind."""

    def __init__(self, jobs: Sequence[Job], folder: Path) -> None:
        self.workers: list[WorkerProcess] = []
        self._selector = selectors.DefaultSelector()
        try:
            for number, job in enumerate(jobs):
                worker = WorkerProcess(job, folder / f"worker-{number}.job", folder / f"worker-{number}.log")
                self.workers.append(worker)
                self._selector.register(worker.stdout, selectors.EVENT_READ, worker)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def beats(self) -> list[wire.Beat]:
        """The last heartbeat of each worker that has sent one."""
        return [worker.beat for worker in self.workers if worker.beat is not None]

    @property
    def finished(self) -> bool:
        """Whether every request of every worker has ended."""
        return all(worker.beat is not None and worker.beat.finished for worker in self.workers)

    def wait_until_ready(self) -> None:
        """Until all workers are; raises ClientError when one is not within ``READY_TIMEOUT_S``."""
        if not self._listen_until(lambda worker: worker.ready, READY_TIMEOUT_S):
            raise ClientError(f"a load worker was not ready within {READY_TIMEOUT_S:g} s")

    def send(self, message: wire.Message) -> None:
        """To all workers."""
        for worker in self.workers:
            worker.send(message)

    def listen(self, timeout_s: float) -> None:
        """Take in what the workers have said, waiting for the first of it at most ``timeout_s``.

        Raises:
            ClientError: a worker has crashed, or has been silent for ``BEAT_TIMEOUT_S``.
        """
        self._take_in(timeout_s)
        now = CLOCK.monotonic_ns()
        for worker in self.workers:
            if worker.exited:
                raise ClientError(_epitaph(worker))
            if worker.ready and now - worker.heard_ns > BEAT_TIMEOUT_S * 1e9:
                raise ClientError(f"a load worker has been silent for {BEAT_TIMEOUT_S:g} s")

    def stop(self, message: wire.Stop) -> None:
        """End the load everywhere and wait for the rows; a worker that does not answer in time is killed."""
        self.send(message)
        chunks = sum(beat.chunks for beat in self.beats)
        for answered, bound_s in (
            (lambda worker: worker.stopping, STOP_TIMEOUT_S),
            (lambda worker: worker.saved, SAVE_TIMEOUT_S + SAVE_S_PER_CHUNK * chunks),
            (lambda worker: worker.exited, EXIT_TIMEOUT_S),
        ):
            self._wait_or_kill(answered, bound_s)

    def close(self) -> None:
        """Leave nothing behind; harmless when called again."""
        for worker in self.workers:
            worker.remove()
        self._selector.close()

    def _wait_or_kill(self, answered: Callable[[WorkerProcess], bool], bound_s: float) -> None:
        deadline = CLOCK.monotonic_ns() + round(bound_s * 1e9)
        while not all(answered(worker) or worker.exited for worker in self.workers):
            if CLOCK.monotonic_ns() >= deadline:
                for worker in self.workers:
                    if not answered(worker):
                        worker.process.kill()
                return
            self._take_in(0.02)

    def _listen_until(self, reached: Callable[[WorkerProcess], bool], bound_s: float) -> bool:
        deadline = CLOCK.monotonic_ns() + round(bound_s * 1e9)
        while not all(reached(worker) for worker in self.workers):
            if CLOCK.monotonic_ns() >= deadline:
                return False
            self.listen(0.1)
        return True

    def _take_in(self, timeout_s: float) -> None:
        if not self._selector.get_map():
            CLOCK.sleep(timeout_s)
            return
        for key, _ in self._selector.select(timeout_s):
            if not key.data.read():
                self._selector.unregister(key.fileobj)


def _epitaph(worker: WorkerProcess) -> str:
    lines = worker.log.read_text(errors="replace").splitlines()[-_LOG_TAIL:]
    return "\n".join([f"a load worker ended with exit code {worker.process.returncode}", *lines])
