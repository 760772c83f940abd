"""SIGTERM ends a command as Ctrl-C does: a job that is cancelled ends what it started, too."""

from __future__ import annotations

import signal


def interrupted_by_sigterm() -> None:
    """From now on, in the whole process."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
