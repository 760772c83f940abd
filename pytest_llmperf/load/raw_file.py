"""The file of raw responses: what a worker was sent, byte for byte, with the time of each read.

Of text and bytes, so that ``grep -a`` finds things in it: one line of JSON about the file; then for each request one
line of JSON, the bytes of its response (so many as the line says), and a line end.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import orjson

from pytest_llmperf.load.exchange import Exchange
from pytest_llmperf.load.http1 import HttpError
from pytest_llmperf.load.job import JobRequest
from pytest_llmperf.load.row import Row, read_row
from pytest_llmperf.model.outcome import Outcome

FORMAT = 1
"""Raised when a reader of the format before would misread a file."""

RAW_LIMIT = 2**30
"""Bytes of all such files of a run together: what goes beyond is not kept."""

FOLDER = "raw"


class RawFile:
    """Written while a worker reads its exchanges, after the clock has stopped.

    A disk that is full costs the file and never the run: then the file is removed, and nothing is kept.

    Args:
        file: where to; made with its folder.
        limit: bytes; nothing is kept after the first response that does not fit.

    Attributes:
        kept: how many responses.
    """

    def __init__(self, file: Path, limit: int, *, exact_output: bool) -> None:
        self.kept = 0
        self._file = file
        self._left = limit
        self._stream: IO[bytes] | None = None
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._stream = file.open("wb")
            self._stream.write(orjson.dumps({"llmperf_raw": FORMAT, "exact_output": exact_output}) + b"\n")
        except OSError:
            self._give_up()

    def keep(self, request: JobRequest, exchange: Exchange, *, masked: bool) -> None:
        """Add one response, while there is room; ``masked`` says that an API key was cut out of it before."""
        if self._stream is None:
            return
        about = {
            "index": request.index,
            "planned_input_tokens": request.planned_input_tokens,
            "asked_tokens": request.asked_tokens,
            "at_ns": exchange.at_ns,
            "sent_ns": exchange.sent_ns,
            "done_ns": exchange.done_ns,
            "outcome": exchange.outcome,
            "reason": exchange.reason.encode("utf-8", "replace").decode(),
            "masked": masked,
            "bytes": len(exchange.raw),
            "stamps": exchange.stamps.tolist(),
            "offsets": exchange.offsets.tolist(),
        }
        entry = orjson.dumps(about) + b"\n" + exchange.raw + b"\n"
        try:
            self._left -= len(entry)
            if self._left < 0:
                self.close()
                return
            self._stream.write(entry)
            self.kept += 1
        except OSError:
            self._give_up()

    def close(self) -> None:
        """Nothing more is kept; may be called twice."""
        if self._stream is None:
            return
        try:
            self._stream.close()
            self._stream = None
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        self.kept = 0
        with suppress(OSError):
            if self._stream is not None:
                self._stream.close()
        self._stream = None
        with suppress(OSError):
            self._file.unlink()


@dataclass(frozen=True, slots=True)
class Reread:
    """A response that was read once more.

    Attributes:
        row: what it means today.
        masked: whether an API key was cut out of it, so that its text is another one.
    """

    row: Row
    masked: bool


def reread(folder: Path) -> Iterator[Reread]:
    """Every response that the workers of a run kept in ``folder``, parsed again.

    Raises:
        OSError: a file cannot be read.
        ValueError: it was cut, is of a newer format, or is something else; the text names it.
    """
    for file in sorted(folder.glob("*.raw")):
        with file.open("rb") as stream:
            try:
                yield from _entries(stream)
            except (orjson.JSONDecodeError, KeyError, TypeError, EOFError) as error:
                raise ValueError(f"{file}: damaged, or no file of raw responses: {error}") from None
            except ValueError as error:
                raise ValueError(f"{file}: {error}") from None


def _entries(stream: IO[bytes]) -> Iterator[Reread]:
    about = orjson.loads(stream.readline())
    if about["llmperf_raw"] > FORMAT:
        raise ValueError(f"format {about['llmperf_raw']}, and this pytest-llmperf reads up to {FORMAT}: update it")
    while line := stream.readline():
        entry = orjson.loads(line)
        raw = stream.read(entry["bytes"])
        if stream.read(1) != b"\n":
            raise EOFError("it ends within a response")
        request = JobRequest(
            index=entry["index"],
            body="",
            at_ns=None,
            planned_input_tokens=entry["planned_input_tokens"],
            asked_tokens=entry["asked_tokens"],
        )
        row = read_row(request, _exchange(entry, raw), exact_output=about["exact_output"])
        yield Reread(row, entry["masked"])


def _exchange(entry: dict[str, Any], raw: bytes) -> Exchange:
    """The exchange as it was when it had ended."""
    exchange = Exchange(
        request=b"",
        at_ns=entry["at_ns"],
        sent_ns=entry["sent_ns"],
        done_ns=entry["done_ns"],
        raw=bytearray(raw),
        stamps=array("q", entry["stamps"]),
        offsets=array("q", entry["offsets"]),
        outcome=Outcome(entry["outcome"]),
        reason=entry["reason"],
    )
    with suppress(HttpError):  # it was the end of the exchange then, and is the reason of its outcome
        exchange.framing.complete(exchange.raw)
    return exchange
