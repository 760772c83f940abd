"""A pool: open connections to one endpoint, without a limit of its own."""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

from pytest_llmperf.load.connection import Connection, Traffic

CONNECT_TIMEOUT_S = 10.0
_AT_ONCE = 64
"""Connections opened at the same time before the load starts: fewer than the listen backlog of any server."""


def address_of(url: str) -> tuple[str, str]:
    """The Host header and the path prefix of an endpoint's base URL."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2], parts.path.rstrip("/")


class Pool:
    """Hands out the connection that was used last, or a new one."""

    def __init__(self, url: str, traffic: Traffic) -> None:
        parts = urlsplit(url)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._traffic = traffic
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()

    async def open_ahead(self, count: int) -> None:
        """Open ``count`` connections; those that fail will fail again, and be told of, when they are needed."""
        for first in range(0, count, _AT_ONCE):
            opened = await asyncio.gather(
                *(self.open() for _ in range(min(_AT_ONCE, count - first))), return_exceptions=True
            )
            self._idle += [connection for connection in opened if isinstance(connection, Connection)]
            if len(self._idle) < first + len(opened):
                return

    async def take(self) -> Connection:
        """An idle connection that is still open, or a new one.

        Raises:
            OSError: the server cannot be reached, or not within ``CONNECT_TIMEOUT_S``.
        """
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
            self._all.discard(connection)
        return await self.open()

    async def open(self) -> Connection:
        """A new connection; raises as ``take`` does."""
        loop = asyncio.get_running_loop()
        opening = loop.create_connection(lambda: Connection(self._traffic), self._host, self._port, ssl=self._tls)
        try:
            _, connection = await asyncio.wait_for(opening, CONNECT_TIMEOUT_S)
        except TimeoutError:
            raise OSError(f"no connection to {self._host}:{self._port} within {CONNECT_TIMEOUT_S:g} s") from None
        self._all.add(connection)
        return connection

    def give_back(self, connection: Connection) -> None:
        """Keep it for the next exchange, or drop it when it cannot carry one."""
        if connection.reusable:
            self._idle.append(connection)
        else:
            connection.abort()
            self._all.discard(connection)

    def close(self) -> None:
        """Drop every connection at once."""
        for connection in self._all:
            connection.abort()
        self._all.clear()
        self._idle.clear()
