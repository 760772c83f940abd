"""A stub of an engine's control plane: each path answers from a list, and keeps to the last one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

Reply = tuple[int, Any]
SILENCE: Reply = (0, None)
"""Reads the request and says nothing."""
TRICKLE: Reply = (1, None)
"""Answers 200 and sends a byte every tenth of a second, for ever."""

MODELS: Reply = (200, {"data": [{"id": "m"}]})
COMPLETION: Reply = (200, {"choices": [{"text": " hydrogen"}], "usage": {"completion_tokens": 1}})
READY: dict[str, list[Reply]] = {
    "/health": [(200, {})],
    "/v1/models": [MODELS],
    "/v1/completions": [COMPLETION],
}


class Stub:
    """Where it listens, and every request as (path, authorization)."""

    def __init__(self, replies: dict[str, list[Reply]]) -> None:
        self.replies = {path: list(answers) for path, answers in replies.items()}
        self.seen: list[tuple[str, str]] = []
        self.over = Event()
        self.url = ""


@contextmanager
def stub(*, location: str = "", **changes: list[Reply]) -> Iterator[Stub]:
    """A server that is ready but for ``changes``; ``health=``, ``models=``, ``completions=``, ``chat=``.

    ``location`` goes along with every answer; only a redirect means it.
    """
    paths = {
        "health": "/health",
        "models": "/v1/models",
        "completions": "/v1/completions",
        "chat": "/v1/chat/completions",
    }
    state = Stub(READY | {paths[name]: replies for name, replies in changes.items()})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer()

        def _answer(self) -> None:
            state.seen.append((self.path, self.headers.get("Authorization", "")))
            queue = state.replies.get(self.path, [(404, {})])
            status, body = queue.pop(0) if len(queue) > 1 else queue[0]
            if (status, body) == SILENCE:
                state.over.wait()
                return
            self.send_response(200 if (status, body) == TRICKLE else status)
            if location:
                self.send_header("Location", location)
            self.end_headers()
            if (status, body) == TRICKLE:
                while not state.over.wait(0.1):
                    self.wfile.write(b" ")
            else:
                self.wfile.write(json.dumps(body).encode())

        def handle(self) -> None:
            with suppress(ConnectionError):
                super().handle()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.url = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield state
        state.over.set()
        server.shutdown()
