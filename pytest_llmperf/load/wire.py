"""The talk between the driver and its workers: one JSON object a line, down stdin and up stdout.

::

    driver                                 worker
      │  (job file as argument)              │  renders, connects
      │◀── Ready ────────────────────────────│
      │─── Start ───────────────────────────▶│  the clock runs
      │◀── Beat, every 200 ms; a last one ───│
      │─── Stop ────────────────────────────▶│  drops what is in flight
      │◀── Stopping ─────────────────────────│  parses, writes its rows
      │◀── Saved ────────────────────────────│  exits

The end of stdin means that the driver is gone; a worker then exits at once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import orjson

BEAT_S = 0.2


@dataclass(frozen=True, slots=True)
class Ready:
    """All requests are rendered, all connections that can be opened ahead are open."""


@dataclass(frozen=True, slots=True)
class Start:
    """Begin at this monotonic time."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Beat:
    """How a worker fares.

    ``busy_since_ns`` is when ``in_flight`` last rose from 0; ``finished`` is True once every request has ended.
    """

    now_ns: int
    last_byte_ns: int
    busy_since_ns: int
    in_flight: int
    done: int
    failed: int
    chunks: int
    finished: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """End the load; what is in flight gets ``outcome`` and ``reason``."""

    outcome: int
    reason: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """The load has ended; the rows are being written."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The rows are written."""


Message = Ready | Start | Beat | Stop | Stopping | Saved

_KINDS: dict[str, type[Message]] = {kind.__name__: kind for kind in (Ready, Start, Beat, Stop, Stopping, Saved)}


def encode(message: Message) -> bytes:
    """One line."""
    return orjson.dumps([type(message).__name__, asdict(message)]) + b"\n"


def decode(line: bytes) -> Message:
    """The message of one line.

    Raises:
        ValueError: the line is no message.
    """
    try:
        kind, fields = orjson.loads(line)
        return _KINDS[kind](**fields)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"no message: {line[:200]!r}") from error
