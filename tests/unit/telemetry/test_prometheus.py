import string
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.telemetry.prometheus import parse, scrape

METRICS = Path(__file__).parents[2] / "data" / "metrics"


class Pages(BaseHTTPRequestHandler):
    pages = {  # noqa: RUF012
        "/metrics": (200, "# TYPE a counter\na_total 3\n"),
        "/html": (200, "<html><body>hello</body></html>"),
        "/json": (200, '[{"iter": 1}]'),
        "/down": (503, "a_total 3\n"),
    }

    def do_GET(self) -> None:
        status, text = self.pages[self.path]
        if "secret" in self.headers.get("Authorization", ""):
            text = "authorized 1\n"
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Pages) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_labels_are_sorted_and_every_sample_is_kept() -> None:
    vllm = parse((METRICS / "vllm-0.32.0_mtp_damaged30.txt").read_text())
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    assert vllm[f'{name}{{engine="0",model_name="tiny",position="2"}}'] == 111
    llama = parse((METRICS / "xllamacpp-2026.10_mtp_damaged30.txt").read_text())
    assert llama["llamacpp:spec_decode_num_drafts_total"] == 388
    assert llama["llamacpp:prompt_seconds_total"] == pytest.approx(0.038069)


names = st.from_regex(r"[a-z_:][a-z0-9_:]{0,20}", fullmatch=True)
labels = st.dictionaries(
    st.sampled_from("abcdefgh"), st.text(string.ascii_letters + '"\\\n ,{}=é', max_size=8), max_size=3
)


@given(name=names, labels=labels, value=st.floats(allow_nan=False))
def test_a_series_is_written_as_prometheus_writes_it(name: str, labels: dict[str, str], value: float) -> None:
    escaped = {key: v.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for key, v in labels.items()}
    inner = ",".join(f'{key}="{escaped[key]}"' for key in sorted(escaped))
    series = f"{name}{{{inner}}}" if labels else name
    shuffled = ",".join(f'{key}="{escaped[key]}"' for key in sorted(escaped, reverse=True))
    line = f"{name}{{{shuffled}}}" if labels else name
    assert parse(f"{line} {value}\n") == {series: value}


def test_a_page_of_counters(base: str) -> None:
    assert scrape(f"{base}/metrics", 5) == {"a_total": 3}


def test_the_key_goes_along(base: str) -> None:
    assert scrape(f"{base}/metrics", 5, {"Authorization": "Bearer secret"}) == {"authorized": 1}


@pytest.mark.parametrize("page", ["html", "json", "down"])
def test_what_is_no_page_of_counters_is_unknown_and_not_zero(base: str, page: str) -> None:
    assert scrape(f"{base}/{page}", 5) is None


@given(st.text('a{}"=,# \n1\\', max_size=30))
def test_whatever_is_no_exposition_is_a_value_error(text: str) -> None:
    with suppress(ValueError):
        parse(text)


def test_a_label_without_a_name_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="too early"):
        parse('{ , =#={1"}1a=\n')


def test_nobody_there() -> None:
    assert scrape("http://127.0.0.1:9/metrics", 1) is None


def test_a_proxy_of_the_environment_is_not_used(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert scrape(f"{base}/metrics", 5) == {"a_total": 3}
