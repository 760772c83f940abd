"""The client: a plan and an endpoint in, records out. The hot path reads, stamps, counts and appends, no more.

Only a chat of several turns makes requests while the clock runs (``conversation``): they repeat what was answered.

::

    driver ── job file, start, stop ──▶ worker: runner ▶ connection     while the clock runs: bytes and stamps
       ▲                                   │
       │                                   └▶ http1 ▶ sse ▶ answer ▶ row    after it: meaning
       └── heartbeats, rows file ◀─────────┘
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_llmperf.load.capture import Capture, Progress
    from pytest_llmperf.load.driver import drive
    from pytest_llmperf.load.raw_file import reread
    from pytest_llmperf.load.records_file import read_records

__all__ = ["Capture", "Progress", "drive", "read_records", "reread"]

_HOMES = {
    "Capture": "capture",
    "Progress": "capture",
    "drive": "driver",
    "read_records": "records_file",
    "reread": "raw_file",
}


def __getattr__(name: str) -> Any:
    """The public names on first use: a worker process imports this package too and must start without numpy."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
