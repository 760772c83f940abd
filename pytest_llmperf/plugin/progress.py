"""The progress line: one line that is rewritten, on a terminal only; and the few lines that everybody must see."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import pytest


class Progress:
    """Shows what is going on now.

    Writes past pytest's capture. The line is for terminals: silent in CI, in xdist workers and with ``-q``.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._capture = config.pluginmanager.getplugin("capturemanager")  # None with -p no:capture
        self._stream = sys.__stderr__
        wanted = config.get_verbosity() >= 0 and not hasattr(config, "workerinput")
        self._terminal = self._stream is not None and self._stream.isatty() and wanted
        self._shown = False
        self._said: set[str] = set()

    def __call__(self, text: str) -> None:
        """Replace the line."""
        if self._terminal:
            self._write(f"\r\x1b[2K  {text}")
            self._shown = True

    def clear(self) -> None:
        """Take the line away before pytest prints."""
        if self._shown:
            self._write("\r\x1b[2K")
            self._shown = False

    def say(self, line: str) -> None:
        """Print a line that stays, on a terminal or not, with ``-q`` or not; the same line only once."""
        if line not in self._said:
            self._said.add(line)
            self.clear()
            self._write(f"{line}\n")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            with self._capture.global_and_fixture_disabled() if self._capture else nullcontext():
                self._stream.write(text)
                self._stream.flush()
