"""``llmperf doctor`` as a user runs it. Whether the machine of the tests is fit is its own business."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import llmperf


def test_the_client_is_tested_and_the_exit_status_says_whether_the_machine_is_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a lease of its own
    done = llmperf("doctor", "--json", cwd=tmp_path, timeout_s=120)
    document = json.loads(done.stdout)
    assert done.returncode == (0 if document["fit"] else 10), done.stderr
    assert "self-test: 16 streams at 50 tok/s on 1 worker" in done.stderr
    assert {finding["check"] for finding in document["findings"]} >= {"host_idle", "client, 1 worker"}
    [first, *_] = document["client"][0]["steps"]
    assert first["sent"]["chunks"] == 16 * 75
    assert not list(tmp_path.glob("llmperf-*"))
