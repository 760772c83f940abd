"""A fake OpenAI server that misbehaves on demand.

In a test: ``with FakeServer(Behaviour(fault="close:3")) as server: ... server.url, server.seen``.
As a process: ``python tests/fake_server.py --port 0 --fault stall:2 --address-file FILE``; it prints its URL.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

FAULTS = """
status:CODE     answer with this HTTP status and an OpenAI error body, which repeats the Authorization header
deaf            read the request and say nothing
silent          HTTP 200, and nothing more
ping            HTTP 200, and comments for ever
stall:N         nothing more after N chunks
close:N         close the connection after N chunks
hangup          close the connection without a byte
reset:N         the same with a TCP reset
error:N         an error event after N chunks
short:N         end, in good order, after N tokens
json            answer with one JSON object instead of a stream
die:N           exit the process, at once, after N chunks
""".strip()


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """How the server answers.

    Attributes:
        fault: one of ``FAULTS``, "" for none.
        fault_from: the first request that has the fault, counted from 0.
        fault_until: the first request after it that has not.
        first_token_s: time to the first token.
        gap_s: time between chunks.
        tokens_per_chunk: words in one chunk.
        cached_tokens: what usage says of the prefix cache; -1 to say nothing.
        framing: how the body ends: "chunked" or "close".
        piece_bytes: write the stream in pieces of so many bytes, 0 for one write an event.
        crlf: end lines with CRLF.
        usage: send a usage object at the end.
        counts: understand ``continuous_usage_stats`` and ``return_token_ids``.
        refuses: a request field that is answered with HTTP 400.
        together: no answer begins before so many requests are in flight; 0 for none.
        one_request_per_connection: close after each answer without having said so.
        silent_metrics: never answer GET /metrics.
        accepts: accepted drafts of each verify step that GET /metrics counts; 0 to count none.
        replay: file with a recorded stream to send instead of words.
    """

    fault: str = ""
    fault_from: int = 0
    fault_until: int = 1_000_000
    first_token_s: float = 0.0
    gap_s: float = 0.0
    tokens_per_chunk: int = 1
    cached_tokens: int = 0
    framing: str = "chunked"
    piece_bytes: int = 0
    crlf: bool = False
    usage: bool = True
    counts: bool = False
    refuses: str = ""
    together: int = 0
    one_request_per_connection: bool = False
    silent_metrics: bool = False
    accepts: float = 0.0
    replay: str = ""

    def fault_of(self, number: int) -> tuple[str, int]:
        """Name and number of the fault of one request, ("", 0) when it has none."""
        if not self.fault or not self.fault_from <= number < self.fault_until:
            return "", 0
        name, _, value = self.fault.partition(":")
        return name, int(value or 0)


@dataclass(frozen=True)
class Seen:  # one request as the server saw it
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


class FaultError(Exception):  # the fault has struck; the connection is gone
    pass


@dataclass
class FakeServer:
    """Listens on a port of 127.0.0.1 that the kernel gives; a context manager that runs it in a thread."""

    behaviour: Behaviour = field(default_factory=Behaviour)
    port: int = 0
    tls: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    scrapes: int = 0
    in_flight: int = 0
    max_in_flight: int = 0

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(10), "the fake server did not start within 10 s"
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)
        self._loop.close()

    def _run(self, ready: threading.Event) -> None:
        self._loop.run_until_complete(self.serve(ready.set))

    async def serve(self, on_ready: Any) -> None:
        self._over = asyncio.Event()
        self._all_there = asyncio.Event()
        self._never = asyncio.Event()  # held here: a task that only waits for an event of its own may be collected
        server = await asyncio.start_server(self._connection, "127.0.0.1", self.port, backlog=4096, ssl=self.tls)
        self.port = server.sockets[0].getsockname()[1]
        on_ready()
        await self._over.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                await self._answer(request, writer)
                if self.behaviour.one_request_per_connection or self.behaviour.framing == "close":
                    return
        except (FaultError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def _counters(self) -> bytes:
        """Four verify steps an answer, so that answers of 16 tokens and more can have been made so."""
        steps = 4 * len(self.seen)
        return f"fake_steps_total {steps}\nfake_accepted_total {steps * self.behaviour.accepts}\n".encode()

    async def _answer(self, request: Seen, writer: asyncio.StreamWriter) -> None:
        if request.path == "/metrics":
            self.scrapes += 1
            if self.behaviour.silent_metrics:
                await self._never.wait()
            if self.behaviour.accepts:
                writer.write(_whole(200, self._counters()))
                return
        if not request.path.startswith("/v1/c"):
            writer.write(_whole(200, json.dumps({"object": "list", "data": [{"id": "fake"}]}).encode()))
            return
        if not request.json.get("stream"):
            # Whoever waits for the server to be ready asks like this; faults are for the load.
            said = {"text": " w", "message": {"content": " w"}}
            writer.write(_whole(200, json.dumps({"choices": [said], "usage": {"completion_tokens": 1}}).encode()))
            return
        number = len(self.seen)
        self.seen.append(request)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        if self.in_flight >= self.behaviour.together:
            self._all_there.set()
        try:
            await self._generate(number, request, writer)
        finally:
            self.in_flight -= 1

    async def _generate(self, number: int, request: Seen, writer: asyncio.StreamWriter) -> None:
        name, count = self.behaviour.fault_of(number)
        await self._all_there.wait()
        if name == "hangup":
            raise FaultError
        if self.behaviour.refuses in request.json:
            name, count = "status", 400
        if name == "deaf":
            await self._never.wait()
        if name == "status":
            echo = request.headers.get("authorization", "")
            error = {"error": {"message": f"fake trouble {count} {echo}".strip(), "type": "fake", "code": count}}
            writer.write(_whole(count, json.dumps(error).encode()))
            return
        if name == "json":
            writer.write(_whole(200, b'{"object": "text_completion", "choices": [{"text": " w"}]}'))
            return
        writer.write(_stream_head(self.behaviour.framing))
        if name == "silent":
            await self._never.wait()
        while name == "ping":
            await self._write(writer, b": ping\n\n")
            await asyncio.sleep(0.1)
        await self._stream(request, writer, name, count)
        writer.write(b"0\r\n\r\n" if self.behaviour.framing == "chunked" else b"")
        await writer.drain()

    async def _stream(self, request: Seen, writer: asyncio.StreamWriter, fault: str, count: int) -> None:
        chunks = 0
        async for event, is_chunk in self._events(request, count if fault == "short" else None):
            if fault not in {"", "short"} and chunks == count:
                await self._strike(fault, writer)
            await self._write(writer, event)
            chunks += is_chunk

    async def _strike(self, fault: str, writer: asyncio.StreamWriter) -> None:
        await writer.drain()
        if fault == "stall":
            await self._never.wait()
        if fault == "die":
            os._exit(9)
        if fault == "error":
            await self._write(writer, b'data: {"error": {"message": "the fake engine is ill"}}\n\ndata: [DONE]\n\n')
            writer.write(b"0\r\n\r\n")
        if fault == "reset":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        raise FaultError

    async def _events(self, request: Seen, stop_at: int | None) -> AsyncIterator[tuple[bytes, bool]]:
        """The events of an answer, and whether each is a chunk with text."""
        behaviour, asked = self.behaviour, request.json
        if behaviour.replay:
            yield Path(behaviour.replay).read_bytes(), True  # noqa: ASYNC240 (small, and a test)
            return
        chat = "messages" in asked
        if chat:
            yield _event([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]), False
        total = asked["max_tokens"] if stop_at is None else stop_at
        await asyncio.sleep(behaviour.first_token_s)
        for first in range(0, total, behaviour.tokens_per_chunk):
            if first and behaviour.gap_s:
                await asyncio.sleep(behaviour.gap_s)
            numbers = range(first, min(first + behaviour.tokens_per_chunk, total))
            text = "".join(f" w{n}" for n in numbers)
            said = {"delta": {"content": text}} if chat else {"text": text}
            ids = {"token_ids": list(numbers)} if behaviour.counts and asked.get("return_token_ids") else {}
            more = {}
            if behaviour.counts and asked["stream_options"].get("continuous_usage_stats"):
                more["usage"] = self._usage(asked, numbers.stop)
            yield _event([{"index": 0, **said, **ids, "finish_reason": None}], **more), True
        ended = "length" if stop_at is None else "stop"
        yield _event([{"index": 0, **({"delta": {}} if chat else {"text": ""}), "finish_reason": ended}]), False
        if behaviour.usage:
            yield _event([], usage=self._usage(asked, total)), False
        yield b"data: [DONE]\n\n", False

    def _usage(self, asked: dict[str, Any], total: int) -> dict[str, Any]:
        prompt = asked["prompt"] if "prompt" in asked else asked["messages"][0]["content"]
        cached = self.behaviour.cached_tokens
        details = None if cached < 0 else {"cached_tokens": cached}
        return {
            "prompt_tokens": len(prompt.split() if isinstance(prompt, str) else prompt),
            "completion_tokens": total,
            "prompt_tokens_details": details,
        }

    async def _write(self, writer: asyncio.StreamWriter, event: bytes) -> None:
        if self.behaviour.crlf:
            event = event.replace(b"\n", b"\r\n")
        if self.behaviour.framing == "chunked":
            event = f"{len(event):x}\r\n".encode() + event + b"\r\n"
        size = self.behaviour.piece_bytes or len(event)
        for start in range(0, len(event), size):
            writer.write(event[start : start + size])
            await writer.drain()
            await asyncio.sleep(0.0005 if self.behaviour.piece_bytes else 0)


async def _read_request(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(first.split()[1], headers, body)


def _event(choices: list[dict[str, Any]], **more: Any) -> bytes:
    chunk = {"id": "fake-1", "object": "chunk", "created": 1, "model": "fake", "choices": choices, **more}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def _whole(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} Fake\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _stream_head(framing: str) -> bytes:
    how = "Transfer-Encoding: chunked" if framing == "chunked" else "Connection: close"
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{how}\r\n\r\n".encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog=FAULTS, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--address-file", type=Path, help="gets the URL once the server listens")
    for option in fields(Behaviour):
        flag, default = "--" + option.name.replace("_", "-"), option.default
        if isinstance(default, bool):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=default)
        else:
            parser.add_argument(flag, type=type(default), default=default)
    options = vars(parser.parse_args())
    server, address_file = FakeServer(port=options.pop("port")), options.pop("address_file")
    server.behaviour = Behaviour(**options)

    def announce() -> None:
        print(server.url, flush=True)  # noqa: T201
        if address_file is not None:
            address_file.with_suffix(".part").write_text(server.url)
            address_file.with_suffix(".part").replace(address_file)

    asyncio.run(server.serve(announce))


if __name__ == "__main__":
    main()
