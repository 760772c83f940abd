"""SIGTERM ends a session as Ctrl-C does: what runs is stopped, what is judged is kept and reported."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import pytest

_KEY = pytest.StashKey["Termination"]()


def of(config: pytest.Config) -> Termination:
    """The session's own; made on first use."""
    return config.stash.setdefault(_KEY, Termination())


class Termination:
    """Turns SIGTERM into KeyboardInterrupt while engines may be running.

    Slurm, CI systems and container runtimes send SIGTERM and wait half a minute; without a handler Python would end at
    once and leave the engines on the GPUs.
    """

    def __init__(self) -> None:
        self._before: signal._HANDLER = None
        self._installed = False

    def install(self) -> None:
        """Take over, unless somebody else already handles the signal or this is not the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._before = signal.signal(signal.SIGTERM, _interrupt)
            self._installed = True

    def restore(self) -> None:
        """Give the signal back; may be called again."""
        if self._installed:
            signal.signal(signal.SIGTERM, self._before)
            self._installed = False


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(f"{signal.Signals(number).name} received")
