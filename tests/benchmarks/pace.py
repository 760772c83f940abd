"""The server of the benchmarks, as a context manager around ``pace_server.c``."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from tests.benchmarks.timings import Timings

_END_S = 30


class PaceServer:
    """One process; its log is read when it has ended.

    Attributes:
        on_busy, on_idle: called when the first request has come, and whenever the last one in flight has ended.
        said: at the end, ``streams``, ``max_in_flight``, and how many ticks it was late for or a client too slow.
    """

    def __init__(self, binary: Path, folder: Path, *, cores: Sequence[int], tick_ms: float, first_ms: float) -> None:
        self.on_busy: Callable[[], None] = _nothing
        self.on_idle: Callable[[], None] = _nothing
        self.said: dict[str, Any] = {}
        self._log = folder / "server.log"
        pace = [f"--tick-ms={tick_ms}", f"--first-ms={first_ms}"]
        self._command = [str(binary), "--cores", ",".join(map(str, cores)), "--log", str(self._log), *pace]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().removeprefix("port "))
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._listener.join(_END_S)
        self._process.kill()
        self._process.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def timings(self) -> Timings:
        """What it did, by its own clock: a latency counts from the request's last byte to the chunk's send."""
        return Timings.of_log(self._log)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self.said = json.loads(line)
            elif line.startswith("busy"):
                self.on_busy()
            else:
                self.on_idle()


def _nothing() -> None:
    pass
