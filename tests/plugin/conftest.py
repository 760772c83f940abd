"""A project folder with one suite, whose engine is the scripted one, and a way to run pytest on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

HERE = Path(__file__).parent

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
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 8, concurrency: 4}
warmup: {requests: 4}
gates:
  output_throughput: {reference: good, margin: 60%}
  mean_e2el_ms: {reference: good, margin: 90%}
"""

CONFTEST = f"""\
import sys
sys.path.insert(0, {str(HERE)!r})
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
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        return {**kept, **more}

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


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    made = Project(tmp_path)
    made.write()
    return made
