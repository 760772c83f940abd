"""The proxy: a TCP relay in a thread of its own that knows where the streams in its connections begin and end."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections import deque
from time import monotonic_ns
from typing import Self, cast
from urllib.parse import urlsplit

import uvloop

from pytest_llmperf.errors import LlmperfError
from pytest_llmperf.injection.pace import Pace, Watched
from pytest_llmperf.injection.stream import Stream
from pytest_llmperf.model.injection import Injection

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 10.0
FAULT_AFTER = 3
"""Events of an answer that pass before a fault strikes it."""

_BACKLOG = 4096
_ERROR_EVENT = b'data: {"error": {"message": "injected by llmperf", "type": "server_error", "code": 500}}\n\n'


class Proxy:
    """Relays to one endpoint; a context manager.

    Every client connection has one of its own to the endpoint. All that is asked goes on at once; what is answered
    goes on at once too, and is remembered, until ``inject``. No run must overlap that change.

    Attributes:
        url: where clients connect to; the path of the endpoint's own URL included.
    """

    def __init__(self, endpoint: str) -> None:
        parts = urlsplit(endpoint)
        self._host = parts.hostname or ""
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._tls else 80)
        self._authority = parts.netloc.rpartition("@")[2].encode()
        self._path = parts.path
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="llmperf-injection", daemon=True)
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._relays: set[_Relay] = set()
        self._seen: list[Stream] = []
        self.url = ""
        self.injection: Injection | None = None
        self.pace: Pace | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_S) or self._failure is not None:
            self.close()
            raise LlmperfError(f"the injecting proxy did not start: {self._failure or 'no answer'}")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def inject(self, injection: Injection) -> None:
        """From now on; a loss by a share is a share of what was seen until then.

        Raises:
            UsageError: nothing was seen that could be slowed down.
        """
        self.pace = Pace(injection, Watched.of(self._seen)) if injection.slows else None
        self.injection = injection

    def close(self) -> None:
        """Drop all connections and end the thread, within ``STOP_TIMEOUT_S``; may be called again."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_TIMEOUT_S)

    def begin(self, stream: Stream) -> None:
        """A relay has seen a request."""
        if self.injection is None:
            self._seen.append(stream)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            server = self._loop.run_until_complete(self._listen())
        except OSError as error:
            self._failure = error
            return
        finally:
            self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            for relay in tuple(self._relays):
                relay.drop()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

    async def _listen(self) -> asyncio.Server:
        server = cast("asyncio.Server", await self._loop.create_server(self._relay, "127.0.0.1", 0, backlog=_BACKLOG))
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{self._path}"
        return server

    def _relay(self) -> _Relay:
        relay = _Relay(self, self._loop)
        self._relays.add(relay)
        return relay

    def forget(self, relay: _Relay) -> None:
        """A relay is over."""
        self._relays.discard(relay)

    async def connect(self, relay: _Relay) -> None:
        """Open the relay's connection to the endpoint; a client whose cannot be opened is dropped."""
        opening = self._loop.create_connection(lambda: _Upstream(relay), self._host, self._port, ssl=self._tls)
        try:
            await asyncio.wait_for(opening, CONNECT_TIMEOUT_S)
        except (OSError, TimeoutError):
            relay.drop()

    def addressed(self, request: bytes) -> bytes:
        """The beginning of a request, with the endpoint's own name in its Host header."""
        head, end, body = request.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        named = [b"Host: " + self._authority if line[:5].lower() == b"host:" else line for line in lines]
        return b"\r\n".join(named) + end + body


class _Relay(asyncio.Protocol):
    """One client connection."""

    def __init__(self, proxy: Proxy, loop: asyncio.AbstractEventLoop) -> None:
        self._proxy = proxy
        self._loop = loop
        self._client: asyncio.Transport | None = None
        self._upstream: asyncio.Transport | None = None
        self._unsent = bytearray()
        self._stream: Stream | None = None
        self._held: deque[tuple[float, bytes]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._last_ns = 0.0
        self._ended = self._broken = False
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: a client."""
        self._client = cast("asyncio.Transport", transport)
        self._connecting = self._loop.create_task(self._proxy.connect(self))

    def data_received(self, data: bytes) -> None:
        """asyncio: some of a request."""
        if self._stream is None or self._stream.answered:
            self._stream = Stream(monotonic_ns())
            self._proxy.begin(self._stream)
            data = self._proxy.addressed(data)
        if self._upstream is None:
            self._unsent += data
        else:
            self._upstream.write(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """asyncio: the client has gone; nobody is left to answer."""
        self._client = None
        self.drop()

    def connected(self, upstream: asyncio.Transport) -> None:
        """The endpoint is there; what was asked meanwhile goes on."""
        self._upstream = upstream
        if self._client is None:
            self.drop()
        elif self._unsent:
            upstream.write(bytes(self._unsent))
            self._unsent.clear()

    def answered(self, data: bytes) -> None:
        """Some of an answer."""
        now = monotonic_ns()
        stream = self._stream
        if stream is None or self._broken:
            return
        events = stream.take(now, data)
        pace, injection = self._proxy.pace, self._proxy.injection
        if pace is not None:
            self._hold(pace.release_ns(stream, now, events), data)
        elif injection is None or stream.events <= FAULT_AFTER:
            self._hold(now, data)
        else:
            self._break(injection, stream)

    def ended(self) -> None:
        """The endpoint has closed; so will we, once all that is held has gone on."""
        self._upstream = None
        self._ended = True
        if not self._held and not self._broken:
            self._close()

    def drop(self) -> None:
        """Close both sides at once."""
        if self._timer is not None:
            self._timer.cancel()
        for transport in (self._client, self._upstream):
            if transport is not None:
                transport.abort()
        self._client = self._upstream = None
        self._proxy.forget(self)

    def _break(self, injection: Injection, stream: Stream) -> None:
        """The fault strikes; a stalled stream just gets nothing more."""
        self._broken = True
        if self._client is None or injection.kind == "stall":
            return
        if injection.kind == "error":
            size, last = (b"%x\r\n" % len(_ERROR_EVENT), b"\r\n0\r\n\r\n") if stream.chunked else (b"", b"")
            self._client.write(size + _ERROR_EVENT + last)
        self._client.close()

    def _hold(self, release_ns: float, data: bytes) -> None:
        self._last_ns = max(self._last_ns, release_ns)  # in order, whatever the pace says
        self._held.append((self._last_ns, data))
        if self._timer is None:
            self._release()

    def _release(self) -> None:
        """Send what is due, and come back for the rest."""
        self._timer = None
        while self._held and self._held[0][0] <= monotonic_ns():
            _, data = self._held.popleft()
            if self._client is not None:
                self._client.write(data)
        if self._held:
            wait_s = (self._held[0][0] - monotonic_ns()) / 1e9
            self._timer = self._loop.call_later(max(0.0, wait_s), self._release)
        elif self._ended:
            self._close()

    def _close(self) -> None:
        if self._client is not None:
            self._client.close()


class _Upstream(asyncio.Protocol):
    """The relay's connection to the endpoint."""

    def __init__(self, relay: _Relay) -> None:
        self._relay = relay

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: connected."""
        self._relay.connected(cast("asyncio.Transport", transport))

    def data_received(self, data: bytes) -> None:
        """asyncio: some of an answer."""
        self._relay.answered(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """asyncio: the endpoint has closed."""
        self._relay.ended()
