"""The progress line: one line that is rewritten, on a terminal only; silent in CI and in xdist workers."""

from __future__ import annotations

import sys

import pytest


class Progress:
    """Shows what is going on now.

    Writes past pytest's capture, and only where standard error is a terminal; ``-q`` silences it too.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._capture = config.pluginmanager.getplugin("capturemanager")
        self._stream = sys.__stderr__
        wanted = config.get_verbosity() >= 0 and not hasattr(config, "workerinput")
        if self._stream is None or not self._stream.isatty() or not wanted:
            self._stream = None
        self._shown = False

    def __call__(self, text: str) -> None:
        """Replace the line."""
        self._write(f"\r\x1b[2K  {text}")
        self._shown = True

    def clear(self) -> None:
        """Take the line away before pytest prints."""
        if self._shown:
            self._write("\r\x1b[2K")
            self._shown = False

    def _write(self, text: str) -> None:
        if self._stream is not None:
            with self._capture.global_and_fixture_disabled():
                self._stream.write(text)
                self._stream.flush()
