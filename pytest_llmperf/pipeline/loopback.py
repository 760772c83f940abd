"""The loopback: servers of our own on this machine that stream at a known pace, and say how well they kept it."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from types import TracebackType
from typing import IO, Self

from pytest_llmperf.errors import ClientError
from pytest_llmperf.model.ceiling import Pace

START_TIMEOUT_S = 10.0
END_TIMEOUT_S = 10.0

_ANY_PORT = "0"


class Loopback:
    """Server processes behind one port, over which the kernel spreads the connections; a context manager.

    Attributes:
        url: where they listen.
    """

    def __init__(self, *, tick_s: float, processes: int = 1) -> None:
        self._tick_ns = str(round(tick_s * 1e9))
        self._processes: list[subprocess.Popen[bytes]] = []
        port = _ANY_PORT
        try:
            for _ in range(processes):
                port = self._start(port)
        except BaseException:
            self.close()
            raise
        self.url = f"http://127.0.0.1:{port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def alive(self) -> bool:
        """Whether all of them still run."""
        return all(process.poll() is None for process in self._processes)

    def stop(self) -> Pace:
        """End the servers; how they fared.

        Raises:
            ClientError: one of them broke.
        """
        paces = []
        for process in self._processes:
            try:
                said, _ = process.communicate(timeout=END_TIMEOUT_S)
                paces.append(Pace(**json.loads(said)))
            except (subprocess.TimeoutExpired, ValueError, TypeError):
                raise ClientError("a loopback server broke: it did not say how it had fared") from None
        return Pace.of(paces)

    def close(self) -> None:
        """Leave nothing behind; harmless when called again."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _start(self, port: str) -> str:
        module = "pytest_llmperf.pipeline.loopback_server"
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, port, self._tick_ns],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours to handle
        )
        self._processes.append(process)
        said = _first_line(process.stdout)
        if not said:
            raise ClientError(f"a loopback server did not start within {START_TIMEOUT_S:g} s")
        return said


def _first_line(pipe: IO[bytes] | None) -> str:
    """What a server says first; "" when it says nothing in time."""
    if pipe is None or not select.select([pipe], [], [], START_TIMEOUT_S)[0]:
        return ""
    return pipe.readline().decode().strip()
