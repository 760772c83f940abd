"""``llmperf doctor`` as a user runs it. Whether the machine of the tests is fit is its own business."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_llmperf.model.redaction import HIDDEN
from pytest_llmperf.model.snapshot import Snapshot
from tests.cli.commands import llmperf


def test_the_client_is_tested_and_the_exit_status_says_whether_the_machine_is_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a lease of its own
    done = llmperf("doctor", "--json", "--record", "machine.json", cwd=tmp_path, timeout_s=120)
    document = json.loads(done.stdout)
    assert done.returncode == (0 if document["fit"] else 10), done.stderr
    assert "self-test: 16 streams at 50 tok/s on 1 worker" in done.stderr
    assert {finding["check"] for finding in document["findings"]} >= {"host_idle", "client, 1 worker"}
    [first, *_] = document["client"][0]["steps"]
    assert first["sent"]["chunks"] == 16 * 75
    assert not list(tmp_path.glob("llmperf-*"))
    recorded = Snapshot.from_dict(json.loads((tmp_path / "machine.json").read_text(encoding="utf-8")))
    assert (recorded.origin, recorded.host.node) == ("recorded", HIDDEN)


def test_a_mistake_of_the_user_examines_nothing(tmp_path: Path) -> None:
    done = llmperf("doctor", "--profile", "h20", cwd=tmp_path, timeout_s=60)
    assert (done.returncode, done.stdout, done.stderr) == (
        2, "", "no profile is called 'h20'; did you mean 'h200'?\n",
    )  # fmt: skip


def parents() -> Iterator[tuple[int, int]]:
    """Every process with the one that started it."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            yield int(file.parent.name), int(file.read_text().rpartition(")")[2].split()[1])


def descendants(pid: int) -> set[int]:
    children = {child for child, parent in parents() if parent == pid}
    return children.union(*(descendants(child) for child in children))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_goes_on_after_an_interruption(how: signal.Signals, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pytest_llmperf.cli", "doctor"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith(b"self-test: 16 streams")
        deadline = time.monotonic() + 30
        while len(started := descendants(process.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(started) >= 2  # a server and a worker
        process.send_signal(how)
        status = process.wait(timeout=30)
    assert status == (-9 if how is signal.SIGKILL else 130)
    while any(Path(f"/proc/{pid}").exists() for pid in started) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    if how is not signal.SIGKILL:
        assert not list(tmp_path.glob("llmperf-*"))
