"""A server behind TLS, from a suite to the words in the terminal: probes, counters and load trust the same."""

from __future__ import annotations

from pathlib import Path

from tests.fake_server import Behaviour, FakeServer
from tests.projects import Project
from tests.tls import self_signed

SUITE = """\
suite: there
model: {{id: fake, weights: dummy}}
stall_timeout: 5s
engines:
  gateway: {{engine: external, url: "{url}"}}
workloads:
  short: {{kind: words, input_tokens: 16, output_tokens: 16, requests: 8, concurrency: 4}}
warmup: {{requests: 4}}
gates:
  output_throughput: 60%
"""
CASE = "gateway/short"


def test_a_private_authority_is_named_by_the_environment(project: Project, tmp_path: Path) -> None:
    context, certificate = self_signed(tmp_path)
    with FakeServer(Behaviour(gap_s=0.002), tls=context) as server:
        project.write(SUITE.format(url=server.url))
        record = ("suites", "--llmperf-accept=missing", "--llmperf-why=a test", "-v")
        refused = project.run(*record)
        failure, asked = refused.cases[CASE]["failure"], len(server.seen)
        trusted = project.run(*record, SSL_CERT_FILE=str(certificate))
    assert f"GET {server.url}/health: TLS failed: CERTIFICATE_VERIFY_FAILED: self-signed certificate" in failure
    assert "SSL_CERT_FILE can name a file" in failure
    assert asked == 0
    assert trusted.code == 0, trusted.text
    outcomes = [run["llmperf"]["outcomes"] for run in trusted.run_files]
    assert {"ok": 8, "failed": 0, "timed_out": 0, "abandoned": 0} in outcomes
