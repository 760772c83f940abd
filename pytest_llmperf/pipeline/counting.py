"""Counting: the engine's counters before and after one run."""

from __future__ import annotations

from pytest_llmperf.model.counters import Counters
from pytest_llmperf.pipeline.servers import Server
from pytest_llmperf.telemetry.fetch import SilentError


class Counting:
    """Scrapes before a run, now, and once more when asked to; a page that was silent or absent is not asked again.

    Attributes:
        before: None when there are no counters.
        after: None until ``finish``, and without ``before``.
        silent: whether the page did not come within ``servers.SCRAPE_TIMEOUT_S``, which it costs a run once.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.silent = False
        self.after: Counters | None = None
        self.before = self._scraped()

    def finish(self) -> None:
        """The run is over."""
        if self.before is not None:
            self.after = self._scraped()

    def _scraped(self) -> Counters | None:
        try:
            return self._server.scrape()
        except SilentError:
            self.silent = True
            return None
