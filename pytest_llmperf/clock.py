"""The one door to time.

``monotonic_ns`` is CLOCK_MONOTONIC: the same clock in every process of the machine, so stamps of workers can be
compared with stamps of the controller. ``FakeClock`` stands in for all three functions in tests.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Now, today, and waiting."""

    def monotonic_ns(self) -> int:
        """Nanoseconds of CLOCK_MONOTONIC."""

    def utc_now(self) -> datetime:
        """The date and time in UTC, for records that people read."""

    def sleep(self, seconds: float) -> None:
        """Wait; a fake clock only advances."""


class SystemClock:
    """The machine's clock."""

    def monotonic_ns(self) -> int:
        """Nanoseconds of CLOCK_MONOTONIC."""
        return time.monotonic_ns()

    def utc_now(self) -> datetime:
        """The date and time in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


@dataclass
class FakeClock:
    """A clock that moves only when told to, or when somebody sleeps on it."""

    now_ns: int = 0
    today: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def monotonic_ns(self) -> int:
        """Nanoseconds since the fake began, as advanced so far."""
        return self.now_ns

    def utc_now(self) -> datetime:
        """The fake date, moved along with ``monotonic_ns``."""
        return self.today + timedelta(microseconds=self.now_ns / 1000)

    def sleep(self, seconds: float) -> None:
        """Advance by ``seconds`` and return at once."""
        self.now_ns += round(seconds * 1e9)


CLOCK = SystemClock()
