"""Injection around a running server: its proxies, one a start, each of which has watched a run before it slows one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from pytest_llmperf.checks import comparability
from pytest_llmperf.injection import Proxy
from pytest_llmperf.model.injection import Injection
from pytest_llmperf.pipeline.servers import Server


@dataclass
class Injector:
    """Puts one injection between the client and the servers of one case.

    Attributes:
        injection: what is done.
    """

    injection: Injection
    _through: dict[str, Server] = field(default_factory=dict)  # by session
    _open: ExitStack = field(default_factory=ExitStack)

    def through(self, server: Server, watch: Callable[[Server], object]) -> Server:
        """The same server behind a proxy that injects.

        Args:
            server: warm.
            watch: makes one whole run of the case against the server it is given; called once for each start, and only
                where the loss is a share of something.

        Raises:
            UsageError: the proxy could see nothing to slow down.
        """
        if server.session not in self._through:
            proxy = self._open.enter_context(Proxy(server.endpoint.url))
            behind = replace(server, endpoint=replace(server.endpoint, url=proxy.url))
            if self.injection.slows:
                watch(behind)
            proxy.inject(self.injection)
            self._through[server.session] = behind
        return self._through[server.session]

    def facts(self, server: Server) -> dict[str, str]:
        """What a run against this server must say of the loss; {} where it has none, as the one that is watched."""
        harmed = self._through.get(server.session) is server
        return {comparability.INJECTED: str(self.injection)} if harmed else {}

    def close(self) -> None:
        """End all proxies; may be called again."""
        self._through.clear()
        self._open.close()
