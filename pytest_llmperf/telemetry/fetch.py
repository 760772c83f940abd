"""One short HTTP question whose bounds hold against any server: a time for all of it, and a size."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from urllib3.connection import HTTPConnection

LIMIT_BYTES = 16 << 20
"""More than any control page has; an endless one would fill the memory before its time is over."""

_PIECE_BYTES = 1 << 16


class NoAnswerError(Exception):
    """There is no whole answer, and the text says why.

    Attributes:
        final: asking again changes nothing: no such name, no valid URL, no TLS, too large.
    """

    def __init__(self, why: str, *, final: bool = False) -> None:
        super().__init__(why)
        self.final = final


class SilentError(Exception):
    """The answer was not whole in time."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and body of a whole answer; ``location`` is where a redirect leads; it is not followed."""

    status: int
    body: bytes
    location: str = ""


def fetch(
    method: str,
    url: str,
    *,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
) -> Reply:
    """One request and its whole answer within ``timeout_s`` and ``LIMIT_BYTES``, also from a server that drips.

    The resolver has bounds of its own (resolv.conf), and a name with several addresses gets ``timeout_s`` for each.

    Raises:
        NoAnswerError: refused, broken, too large, or a URL that leads nowhere.
        SilentError: not done in time.
    """
    import requests  # noqa: PLC0415 (not for collection time)
    import urllib3  # noqa: PLC0415

    with _Cut(timeout_s) as cut, requests.Session() as session:
        # No proxy and no .netrc: the load goes straight to the server too.
        session.trust_env = False
        tls = ssl.create_default_context() if url.lower().startswith("https:") else None
        for scheme in ("http://", "https://"):
            session.mount(scheme, _adapter(cut, tls))
        try:
            with session.request(
                method,
                url,
                json=body,
                headers=dict(headers or {}),
                timeout=timeout_s,
                stream=True,
                allow_redirects=False,
            ) as answer:
                reply = Reply(answer.status_code, _whole(answer), answer.headers.get("Location", ""))
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            if cut.over or isinstance(error, requests.Timeout) or isinstance(_root(error), TimeoutError):
                raise SilentError from None
            raise _no_answer(error) from None
        # A body without a length just ends where the connection was cut.
        if cut.over:
            raise SilentError
        return reply


def _whole(answer: Any) -> bytes:
    body = bytearray()
    for piece in answer.iter_content(_PIECE_BYTES):
        body += piece
        if len(body) > LIMIT_BYTES:
            raise NoAnswerError(f"the answer is larger than {LIMIT_BYTES >> 20} MiB", final=True)
    return bytes(body)


class _Cut:
    """Shuts a request's connection when its time is over: a timeout of requests begins anew with every byte."""

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._lock = Lock()
        self._connections: list[HTTPConnection] = []
        self._sockets: list[socket.socket] = []
        self._timer = Timer(seconds, self._fire)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def connecting(self, connection: HTTPConnection) -> None:
        """From here on its socket is cut, also in the middle of a TLS handshake."""
        with self._lock:
            self._connections.append(connection)

    def connected(self, connection: HTTPConnection) -> None:
        """http.client forgets the socket of an answer without a length; it must be cut all the same."""
        with self._lock:
            if connection.sock is not None:
                self._sockets.append(connection.sock)
            over = self.over
        if over:
            self._shut()

    def _fire(self) -> None:
        with self._lock:
            self.over = True
        self._shut()

    def _shut(self) -> None:
        with self._lock:
            half_open = [connection.sock for connection in self._connections if connection.sock is not None]
            for each in (*self._sockets, *half_open):
                with suppress(OSError):  # closed already
                    each.shutdown(socket.SHUT_RDWR)


def _adapter(cut: _Cut, tls: ssl.SSLContext | None) -> Any:
    """A transport of requests whose connections report to ``cut``.

    It trusts whom the load client trusts, the system's authorities or those of ``SSL_CERT_FILE``, and not the list that
    requests brings along.
    """
    from requests.adapters import HTTPAdapter  # noqa: PLC0415 (not for collection time)

    class Adapter(HTTPAdapter):
        def init_poolmanager(self, *args: Any, **kwargs: Any) -> Any:
            return super().init_poolmanager(*args, **kwargs, ssl_context=tls)

        def cert_verify(self, conn: Any, *_: Any) -> None:
            conn.cert_reqs = "CERT_REQUIRED"

        def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
            pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
            base: Any = pool.ConnectionCls

            class Watched(base):  # type: ignore[misc]
                def connect(self) -> None:
                    cut.connecting(self)
                    super().connect()
                    cut.connected(self)

            pool.ConnectionCls = Watched
            return pool

    return Adapter()


def _no_answer(error: BaseException) -> NoAnswerError:
    """What happened, in words: the innermost error knows, those around it print addresses of objects."""
    from requests import exceptions  # noqa: PLC0415 (not for collection time)

    root = _root(error)
    if isinstance(root, socket.gaierror):
        return NoAnswerError(f"its host name cannot be resolved ({root.strerror})", final=True)
    if isinstance(root, ssl.SSLCertVerificationError):
        remedy = "SSL_CERT_FILE can name a file with the authority to trust"
        return NoAnswerError(f"TLS failed: {root.reason}: {root.verify_message}; {remedy}", final=True)
    if isinstance(root, ssl.SSLError):
        return NoAnswerError(f"TLS failed: {root.reason or root}", final=True)
    if isinstance(error, (exceptions.InvalidURL, exceptions.InvalidSchema, exceptions.MissingSchema)):
        return NoAnswerError(f"no valid URL: {error}", final=True)
    if isinstance(error, exceptions.InvalidHeader) or isinstance(root, UnicodeError):  # their texts repeat the key
        return NoAnswerError("the API key or the URL holds characters that HTTP cannot carry", final=True)
    return NoAnswerError((root.strerror if isinstance(root, OSError) else None) or str(root) or type(root).__name__)


def _root(error: BaseException) -> BaseException:
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return error
