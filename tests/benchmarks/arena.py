"""One client against one server, each on cores of its own, and what both say of it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.benchmarks.ask import Ask
from tests.benchmarks.contenders import Contender, Seen
from tests.benchmarks.meter import Meter
from tests.benchmarks.pace import PaceServer
from tests.benchmarks.timings import Timings

TIMEOUT_S = 180
_TAIL = 3000
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run.

    Attributes:
        cpu_s: CPU time of the client's whole process tree between the server's first request and its last chunk: its
            start before that and its analysis after it are not in it, for nobody.
        delivered: the most streams that the server had in flight.
        late_ticks: the server's own, over all its threads: beyond a few of them it is the server that was too slow.
    """

    client: str
    ask: Ask
    cpu_s: float
    wall_s: float
    delivered: int
    late_ticks: int
    server: Timings
    seen: Seen

    @property
    def us_per_chunk(self) -> float:
        return 1e6 * self.cpu_s / self.server.tokens

    @property
    def chunks_per_s(self) -> float:
        return self.server.tokens / self.wall_s

    @property
    def valid(self) -> bool:
        return not self.seen.invalid

    def error(self, latency: str, statistic: str) -> float:
        """By what share the client's value is above the server's own."""
        ours, true = (getattr(getattr(side, latency), statistic) for side in (self.seen.timings, self.server))
        return float(ours / true - 1)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "us_per_chunk": self.us_per_chunk, "chunks_per_s": self.chunks_per_s}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """Where the two sides run.

    Attributes:
        server_cores: one thread of the server on each.
        client_cores: for all processes of the client together.
    """

    server: Path
    server_cores: Sequence[int]
    client_cores: Sequence[int]

    def with_client(self, cores: Sequence[int]) -> Arena:
        return replace(self, client_cores=cores)

    def run(self, client: Contender, ask: Ask, *, tick_ms: float = 20.0, first_ms: float = 300.0) -> Result:
        """Raises CalledProcessError or TimeoutExpired, with the end of the client's output printed before it."""
        with tempfile.TemporaryDirectory(prefix="llmperf-bench-") as name:
            folder = Path(name)
            server = PaceServer(self.server, folder, cores=self.server_cores, tick_ms=tick_ms, first_ms=first_ms)
            with server:
                meter = self._drive(client.command(ask, server.port, folder), server, folder)
            return Result(
                client=client.name,
                ask=ask,
                cpu_s=meter.cpu_s,
                wall_s=meter.wall_s,
                delivered=server.said["max_in_flight"],
                late_ticks=server.said["late_ticks"],
                server=server.timings(),
                seen=client.read(folder),
            )

    def _drive(self, command: Sequence[str], server: PaceServer, folder: Path) -> Meter:
        cores = ",".join(map(str, self.client_cores))
        output = folder / "output"
        path = os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path}
        with output.open("wb") as out:
            process = subprocess.Popen(
                ["taskset", "-c", cores, *command], stdout=out, stderr=out, cwd=folder, env=environment
            )
            meter = Meter(process.pid)
            server.on_busy, server.on_idle = meter.start, meter.stop
            try:
                code = process.wait(TIMEOUT_S)
            finally:
                process.kill()
                process.wait()
        if code:
            raise subprocess.CalledProcessError(code, command, output.read_text(errors="replace")[-_TAIL:])
        return meter
