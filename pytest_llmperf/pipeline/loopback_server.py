"""The loopback server, a process: ``python -m pytest_llmperf.pipeline.loopback_server PORT TICK_NS``.

Streams completions to whoever asks, a token a tick, all streams at the same ticks, as the batches of an engine do. It
prints its port, serves until its stdin ends, and then prints how well it kept its pace. One thread, plain sockets and
as little as possible for each chunk: what is measured is the client, and a slow server must not pass for a slow client.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import socket
import sys
import time
from array import array
from itertools import pairwise
from time import monotonic_ns
from typing import Any

SPIN_NS = 1_000_000
"""The kernel's timeout has milliseconds only; the last of them is waited for awake."""

_IDLE_S = 0.5
_READ = 65536
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Stream:
    """One connection, what is left to send on it, and when each chunk of each answer was sent."""

    __slots__ = ("answers", "asked", "left", "socket", "unread", "unsent")

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.unread = b""
        self.unsent = b""
        self.asked = self.left = 0
        self.answers: list[array[int]] = []


class Server:
    """Accepts, reads requests and ticks."""

    def __init__(self, port: int, tick_ns: int) -> None:
        self._tick_ns = tick_ns
        self._due_ns = 0
        self._active: list[Stream] = []
        self._streams: dict[int, Stream] = {}
        self._all: list[Stream] = []
        self._late_ns = array("q")
        self._missed = self._blocked = 0
        self._first = self._last = (0, 0.0)  # monotonic and CPU time of the first tick and the last one
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._listening.bind(("127.0.0.1", port))
        self._listening.listen(4096)
        self._listening.setblocking(False)
        self.port: int = self._listening.getsockname()[1]
        self._poll = select.epoll()
        for descriptor in (self._listening.fileno(), sys.stdin.fileno()):
            self._poll.register(descriptor, select.EPOLLIN)

    def run(self) -> None:
        """Until stdin ends."""
        while self._wait():
            if self._active and monotonic_ns() >= self._due_ns:
                self._tick()

    def facts(self) -> dict[str, Any]:
        """How well the pace was kept; see ``pipeline.loopback.Pace``."""
        answers = [stamps for stream in self._all for stamps in stream.answers]
        gaps = sorted(later - earlier for stamps in answers for earlier, later in pairwise(stamps))
        late, wall_s = sorted(self._late_ns), (self._last[0] - self._first[0]) / 1e9
        return {
            "chunks": sum(map(len, answers)),
            "ticks": len(late),
            "missed": self._missed,
            "blocked": self._blocked,
            "late_p99_ms": _percentile(late, 0.99) / 1e6,
            "cpu_share": (self._last[1] - self._first[1]) / wall_s if wall_s > 0 else 0.0,
            "gap_p50_ms": _percentile(gaps, 0.50) / 1e6,
            "gap_p99_ms": _percentile(gaps, 0.99) / 1e6,
        }

    def _wait(self) -> bool:
        """Take in what has come, at most until the next tick is due; False once stdin has ended."""
        left_ns = self._due_ns - monotonic_ns() - SPIN_NS
        timeout = _IDLE_S if not self._active else max(0, left_ns // 1_000_000) / 1000
        for descriptor, _ in self._poll.poll(timeout):
            if descriptor == sys.stdin.fileno():
                return bool(os.read(descriptor, _READ))
            if descriptor == self._listening.fileno():
                self._accept()
            else:
                self._read(self._streams[descriptor])
        return True

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except BlockingIOError:
                return
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = self._streams[connection.fileno()] = Stream(connection)
            self._all.append(stream)
            self._poll.register(connection.fileno(), select.EPOLLIN)

    def _read(self, stream: Stream) -> None:
        try:
            data = stream.socket.recv(_READ)
        except (BlockingIOError, ConnectionError):
            data = b""
        if not data:
            self._drop(stream)
            return
        stream.unread += data
        head, found, body = stream.unread.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        if found and len(body) >= length:
            stream.unread = body[length:]
            self._begin(stream, json.loads(body[:length])["max_tokens"])

    def _begin(self, stream: Stream, tokens: int) -> None:
        stream.asked = stream.left = tokens
        stream.unsent = _HEAD
        stream.answers.append(array("q"))
        if not self._active:
            self._due_ns = monotonic_ns() + self._tick_ns
            if not self._late_ns:
                self._first = (self._due_ns, time.process_time())
        self._active.append(stream)

    def _drop(self, stream: Stream) -> None:
        self._poll.unregister(stream.socket.fileno())
        del self._streams[stream.socket.fileno()]
        stream.socket.close()
        stream.left = 0
        stream.unsent = b""

    def _tick(self) -> None:
        """One token for every stream."""
        for stream in self._active:
            data, bears = stream.unsent, stream.left > 0
            if bears:
                stream.left -= 1
                data += CHUNK if stream.left else _last(stream.asked)
            elif not data:  # its client has gone
                continue
            try:
                sent = stream.socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self._drop(stream)
                continue
            if bears:
                stream.answers[-1].append(monotonic_ns())
            stream.unsent = data[sent:]
            self._blocked += sent < len(data)
        now = monotonic_ns()
        self._late_ns.append(now - self._due_ns)
        self._last = (now, time.process_time())
        self._due_ns += self._tick_ns
        while self._due_ns < now:  # a tick that could not be kept is left out, as an engine would
            self._due_ns += self._tick_ns
            self._missed += 1
        self._active = [stream for stream in self._active if stream.left or stream.unsent]


def _event(chunk: dict[str, Any]) -> bytes:
    data = b"data: " + json.dumps({"id": "cmpl-loopback", "object": "text_completion", **chunk}).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def _choice(text: str, reason: str | None) -> dict[str, Any]:
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason, "stop_reason": None}
    return {"created": 1, "model": "loopback", "choices": [choice], "usage": None}


CHUNK = _event(_choice(" token", None))
"""About as long as vLLM's."""


def _last(tokens: int) -> bytes:
    usage = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": tokens + 8}
    end = _event(_choice(" token", "length")) + _event({"choices": [], "usage": usage})
    return end + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def _percentile(ordered: list[int], share: float) -> int:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def main() -> None:
    """Serve, then say how it went."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    server = Server(int(sys.argv[1]), int(sys.argv[2]))
    print(server.port, flush=True)  # noqa: T201 (its parent reads it)
    gc.freeze()
    gc.disable()
    server.run()
    print(json.dumps(server.facts()), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
