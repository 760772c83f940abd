"""The bounds hold against servers that lie: these speak raw sockets."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from pytest_llmperf.clock import CLOCK
from pytest_llmperf.telemetry import fetch as module
from pytest_llmperf.telemetry.fetch import NoAnswerError, Reply, SilentError, fetch
from pytest_llmperf.telemetry.prometheus import scrape
from tests.fake_server import FakeServer
from tests.tls import self_signed

Speak = Callable[[socket.socket, Event], None]
BOUND_S = 10.0
"""Far above the timeouts that are asked for, far below what the servers would take."""


@contextmanager
def speaking(speak: Speak) -> Iterator[str]:
    """A server that reads a request's first bytes, and answers with ``speak`` until the context ends."""
    over = Event()

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(65536)
                    speak(connection, over)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(BOUND_S)


def drip(head: bytes, each: bytes) -> Speak:
    def speak(connection: socket.socket, over: Event) -> None:
        connection.sendall(head)
        while not over.wait(0.02):
            connection.sendall(each)

    return speak


def flood(connection: socket.socket, over: Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not over.is_set():
        connection.sendall(b"# x\n" * 1000)


HEAD = b"HTTP/1.1 200 OK\r\n"
DRIPS = {
    "status": drip(b"", b"H"),
    "header": drip(HEAD + b"X-A: ", b"y"),
    "body to the end": drip(HEAD + b"\r\n", b"#\n"),
    "body with length": drip(HEAD + b"Content-Length: 100000\r\n\r\n", b"#"),
    "chunks": drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n#\r\n"),
}


@pytest.mark.parametrize("speak", DRIPS.values(), ids=DRIPS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_drips_is_silent_when_the_time_is_over(speak: Speak, scheme: str) -> None:
    if scheme == "https":  # the handshake drips: a record header that announces more than comes
        speak = drip(b"\x16\x03\x03\x3f\xff", b"\x02")
    with speaking(speak) as place:
        begun = CLOCK.monotonic_ns()
        with pytest.raises(SilentError):
            fetch("GET", f"{scheme}://{place}/", timeout_s=0.3)
        assert CLOCK.monotonic_ns() - begun < BOUND_S * 1e9


@pytest.mark.parametrize("speak", [DRIPS["header"], DRIPS["body to the end"]], ids=["header", "body"])
def test_a_metrics_page_that_drips_is_silent(speak: Speak) -> None:
    with speaking(speak) as place, pytest.raises(SilentError):
        scrape(f"http://{place}/metrics", 0.3)


def test_an_answer_without_end_is_given_up_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT_BYTES", 1 << 20)
    with speaking(flood) as place:
        with pytest.raises(NoAnswerError, match="larger than 1 MiB") as caught:
            fetch("GET", f"http://{place}/", timeout_s=60)
        assert caught.value.final
        assert scrape(f"http://{place}/metrics", 60) is None


def say(answer: bytes) -> Speak:
    return lambda connection, _: connection.sendall(answer)


def test_a_redirect_is_reported_and_not_followed() -> None:
    with speaking(say(b"HTTP/1.1 302 Found\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n")) as place:
        assert fetch("GET", f"http://{place}/", timeout_s=5) == Reply(302, b"", "/else")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "closed connection without response"),
        (b"nonsense\r\n\r\n", "nonsense"),
        (HEAD + b"Content-Length: 9\r\n\r\nhalf", "4 bytes read, 5 more expected"),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: 7\r\n\r\nnotgzip", "incorrect header check"),
    ],
)
def test_a_broken_answer_says_how(answer: bytes, why: str) -> None:
    with speaking(say(answer)) as place, pytest.raises(NoAnswerError, match=why) as caught:
        fetch("GET", f"http://{place}/", timeout_s=5)
    assert not caught.value.final


def test_nobody_there_may_come_later() -> None:
    with pytest.raises(NoAnswerError, match="Connection refused") as caught:
        fetch("GET", "http://127.0.0.1:9/", timeout_s=5)
    assert not caught.value.final


@pytest.mark.parametrize(
    "url", ["http://name.invalid/", "http://", "nowhere", "ftp://127.0.0.1/", "http://127.0.0.1:99999/", "http://[::1"]
)
def test_a_url_that_leads_nowhere_is_final(url: str) -> None:
    with pytest.raises(NoAnswerError) as caught:
        fetch("GET", url, timeout_s=5)
    assert caught.value.final


@pytest.mark.parametrize("key", ["sk-secret\n", "sk-secret\u20ac"])
def test_a_key_that_no_header_can_hold_is_final_and_not_repeated(key: str) -> None:
    with speaking(say(HEAD + b"\r\n")) as place, pytest.raises(NoAnswerError) as caught:
        fetch("GET", f"http://{place}/", timeout_s=5, headers={"Authorization": f"Bearer {key}"})
    assert caught.value.final
    assert "secret" not in str(caught.value)


def test_tls_where_there_is_none_is_final() -> None:
    with speaking(say(HEAD + b"\r\n")) as place, pytest.raises(NoAnswerError, match="TLS failed") as caught:
        fetch("GET", f"https://{place}/", timeout_s=5)
    assert caught.value.final


def test_whom_tls_trusts_is_said_by_the_environment_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, certificate = self_signed(tmp_path)
    with FakeServer(tls=context) as server:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))  # the load client has never heard of it
        with pytest.raises(NoAnswerError, match="self-signed certificate; SSL_CERT_FILE can name a file") as caught:
            fetch("GET", f"{server.url}/v1/models", timeout_s=5)
        assert caught.value.final
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert fetch("GET", f"{server.url}/v1/models", timeout_s=5).status == 200
        with pytest.raises(NoAnswerError, match=r"not valid for 'localhost'"):
            fetch("GET", f"https://localhost:{server.port}/v1/models", timeout_s=5)
