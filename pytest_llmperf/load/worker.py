"""A worker process: ``python -m pytest_llmperf.load.worker JOB``. Runs its share of the load, then writes its rows."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_llmperf.load import wire
from pytest_llmperf.load.connection import Traffic
from pytest_llmperf.load.conversation import Conversation
from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.http1 import render_request
from pytest_llmperf.load.job import Job
from pytest_llmperf.load.lag_probe import LagProbe
from pytest_llmperf.load.pool import Pool, address_of
from pytest_llmperf.load.rows_file import write_rows
from pytest_llmperf.load.runner import Runner, sleep_until
from pytest_llmperf.model.outcome import NEVER, Outcome


def main() -> None:
    """Run the job named on the command line."""
    job = Job.read(Path(sys.argv[1]))
    key = os.environ.get(job.api_key_env, "") if job.api_key_env else ""
    if job.core is not None:
        os.sched_setaffinity(0, {job.core})
    os.set_blocking(sys.stdout.fileno(), False)
    _raise_file_limit()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        session = Session(job, key)
        runner.run(session.run())
    write_rows(job, session.exchanges, session.lags_ns, session.cpu_share, key)
    os.set_blocking(sys.stdout.fileno(), True)
    _say(wire.Saved())


class Session:
    """From Ready to Stop.

    Attributes:
        exchanges: one for each request of the job.
        lags_ns: how late the loop woke up during the load.
        cpu_share: CPU time over wall time of the load.
    """

    def __init__(self, job: Job, key: str) -> None:
        self._job = job
        conversations = _conversations(job, key)
        self.exchanges = [exchange for conversation in conversations for exchange in conversation.exchanges]
        self.lags_ns: Sequence[int] = ()
        self.cpu_share = 0.0
        self._traffic = Traffic()
        self._pool = Pool(job.url, self._traffic)
        self._runner = Runner(conversations, self._pool, job.request_timeout_s)
        self._inbox: asyncio.Queue[wire.Message] = asyncio.Queue()
        self._unread = b""
        self._finished = False

    async def run(self) -> None:
        """Wait for Start, run the load, wait for Stop."""
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._on_stdin)
        await self._pool.open_ahead(self._connections_ahead())
        _say(wire.Ready())
        message = await self._inbox.get()
        if isinstance(message, wire.Start):
            message = await self._measure(message.at_ns)
        _say(wire.Stopping())
        if isinstance(message, wire.Stop):
            self._end_all(message)
        self._pool.close()
        loop.remove_reader(sys.stdin.fileno())

    async def _measure(self, start_ns: int) -> wire.Message:
        """The measured window: a heartbeat, the lag probe, and the load itself.

        No garbage is collected in it, nor after it: reading the answers leaves no cycles, and then the process ends.
        """
        loop = asyncio.get_running_loop()
        gc.collect()
        gc.freeze()
        gc.disable()
        probe = LagProbe(loop)
        probe.start()
        cpu_s, wall_ns = _cpu_s(), time.monotonic_ns()
        load, beats = loop.create_task(self._load(start_ns)), loop.create_task(self._beat())
        load.add_done_callback(self._on_load_over)
        stop = await self._inbox.get()
        self.cpu_share = (_cpu_s() - cpu_s) / max(1e-9, (time.monotonic_ns() - wall_ns) / 1e9)
        probe.stop()
        self.lags_ns = probe.lags_ns
        for task in (load, beats):
            task.cancel()
        return stop

    def _end_all(self, stop: wire.Stop) -> None:
        now = time.monotonic_ns()
        for exchange in self.exchanges:
            if exchange.sent_ns == NEVER:
                exchange.end(now, Outcome.ABANDONED, f"not sent: {stop.reason}")
            else:
                exchange.end(now, Outcome(stop.outcome), stop.reason)

    def _on_load_over(self, load: asyncio.Task[None]) -> None:
        if load.cancelled():
            return
        if (error := load.exception()) is not None:  # a defect of ours: do not let the driver wait for the end
            sys.excepthook(type(error), error, error.__traceback__)
            os._exit(1)
        self._finished = True
        _say(self._beat_now())

    async def _load(self, start_ns: int) -> None:
        for exchange, request in zip(self.exchanges, self._job.requests, strict=True):
            exchange.at_ns = NEVER if request.at_ns is None else start_ns + request.at_ns
        await sleep_until(start_ns)
        if self._job.concurrency is not None:
            await self._runner.run_closed(self._job.concurrency)
        else:
            await self._runner.run_open()

    async def _beat(self) -> None:
        while True:
            _say(self._beat_now())
            await asyncio.sleep(wire.BEAT_S)

    def _beat_now(self) -> wire.Beat:
        return wire.Beat(
            now_ns=time.monotonic_ns(),
            last_byte_ns=self._traffic.last_byte_ns,
            busy_since_ns=self._runner.busy_since_ns,
            in_flight=self._runner.in_flight,
            done=self._runner.done,
            failed=self._runner.failed,
            chunks=self._traffic.reads,
            finished=self._finished,
        )

    def _connections_ahead(self) -> int:
        """Those that are needed at the first moment; one for an open loop opens when its request is nearly due."""
        if self._job.concurrency is not None:
            return min(self._job.concurrency, -(-len(self._job.requests) // self._job.turns))
        return sum(request.at_ns == 0 for request in self._job.requests)

    def _on_stdin(self) -> None:
        data = os.read(sys.stdin.fileno(), 65536)
        if not data:  # the driver is gone, and with it everybody who could want the rows
            os._exit(1)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._inbox.put_nowait(wire.decode(line))


def _conversations(job: Job, key: str) -> list[Conversation]:
    host, prefix = address_of(job.url)
    headers = {"Authorization": f"Bearer {key}"} if key else {}

    def render(body: bytes) -> bytes:
        return render_request(host, prefix + job.path, headers, body)

    bodies = [request.body.encode() for request in job.requests]
    turns = [bodies[first : first + job.turns] for first in range(0, len(bodies), job.turns)]
    return [Conversation([Exchange(request=render(body)) for body in each], each, render) for each in turns]


def _say(message: wire.Message) -> None:
    """Up to the driver; a beat that it does not read in time is lost, which is better than to wait for it."""
    try:
        os.write(sys.stdout.fileno(), wire.encode(message))
    except BlockingIOError:
        pass
    except BrokenPipeError:
        os._exit(1)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:  # about 2.4 times the CPU per chunk
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
