"""A user's project in a temporary folder, and a way to run pytest on it as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

PLUGIN_TESTS = Path(__file__).parent / "plugin"

SUITE = """\
suite: chat
why: A suite of the tests.
model: {id: fake, weights: dummy}
stall_timeout: 2s
engines:
  good: {engine: scripted}
  broken: {extends: good, variant_of: good, default: false, fault: "close:3", fault_from: 12}
  slow: {extends: good, variant_of: good, default: false, gap_s: 0.02}
workloads:
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 16, concurrency: 4}
warmup: {requests: 4}
gates:
  output_throughput: {reference: good, margin: 60%}
  mean_e2el_ms: {reference: good, margin: 90%}
"""

CONFTEST = f"""\
import sys
sys.path.insert(0, {str(PLUGIN_TESTS)!r})
from pytest_llmperf import registry
registry.BUILTIN["engine"]["scripted"] = "scripted_engine:Scripted"
"""


@dataclass
class Outcome:
    """What a run of pytest left behind."""

    code: int
    text: str
    folder: Path

    @property
    def cases(self) -> dict[str, Any]:
        """The JSON report's cases by id."""
        document = json.loads((self.folder / "results.json").read_text())
        return {case["case"]: case for case in document["cases"]}

    @property
    def junit(self) -> dict[str, ET.Element]:
        """JUnit's test cases by name; its classname has the file and the case."""
        root = ET.parse(self.folder / "junit.xml").getroot()  # noqa: S314 (our own output)
        return {element.attrib["name"]: element for element in root.iter("testcase")}

    @property
    def run_files(self) -> list[dict[str, Any]]:
        """Every saved run, in order of time."""
        paths = sorted((self.folder / ".llmperf" / "runs").glob("*/run.json"))
        return [json.loads(path.read_text()) for path in paths]


@dataclass
class Project:
    """A folder with suites, in which pytest can be run as a user runs it."""

    folder: Path

    def write(self, text: str = SUITE, name: str = "suites/chat.llmperf.yaml") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def command(self, *args: str) -> list[str]:
        reports = ["--llmperf-report", "json:results.json", "--junitxml", "junit.xml"]
        return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *reports, *args]

    def environment(self, **more: str) -> dict[str, str]:
        """Ours, but for what would tie the inner pytest to this one, or to whoever measures on this machine."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        return {**kept, "TMPDIR": str(temporary), **more}

    def run(self, *args: str, timeout: float = 120, **environ: str) -> Outcome:
        done = subprocess.run(
            self.command(*args),
            cwd=self.folder,
            env=self.environment(**environ),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Outcome(done.returncode, done.stdout + done.stderr, self.folder)

    @contextmanager
    def started(self, *args: str, **environ: str) -> Iterator[subprocess.Popen[str]]:
        """The same in the background, for tests that interrupt it; a test that fails leaves nothing of it."""
        with subprocess.Popen(
            self.command(*args),
            cwd=self.folder,
            env=self.environment(**environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def outcome(self, process: subprocess.Popen[str], timeout: float = 60) -> Outcome:
        """What a background run left behind."""
        text, _ = process.communicate(timeout=timeout)
        return Outcome(process.returncode, text, self.folder)

    def processes(self) -> list[tuple[int, str]]:
        """Ids and command lines of the processes that mention this folder."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(self.folder) in line:
                found.append((int(path.parent.name), line))
        return found

    def left_behind(self, wait_s: float = 3.0) -> list[tuple[int, str]]:
        """The same, after a moment for those that are going."""
        deadline = time.monotonic() + wait_s
        while (found := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def wait_for(self, pattern: str, wait_s: float = 60.0) -> Path:
        """The first file that matches, once there is one."""
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            if found := sorted(self.folder.glob(pattern)):
                return found[0]
            time.sleep(0.02)
        pytest.fail(f"no {pattern} within {wait_s:g} s")
