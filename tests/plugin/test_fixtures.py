"""The fixtures in tests of a user."""

from __future__ import annotations

from tests.projects import SUITE, Project

TEST = """
import pytest

pytestmark = pytest.mark.llmperf(suite="suites/chat.llmperf.yaml", engine="good")


def test_server(engine_server):
    assert engine_server.url.startswith("http://127.0.0.1:")
    assert engine_server.model == "fake"
    assert engine_server.log.exists()


def test_same_server(engine_server):
    assert engine_server.metrics() is None


def test_measure_and_judge(llmperf):
    off = llmperf.measure(runs=2)
    on = llmperf.measure(engine="slow", runs=2)
    assert off.mean("output_throughput") > 2 * on.mean("output_throughput")
    verdict = llmperf.judge(reference=off, candidate=on)["output_throughput"]
    assert verdict.word == "REGRESSED", verdict


@pytest.mark.gpus(99)
def test_gpus(gpu_lease):
    assert False, "there are never so many"


def test_no_gpus_asked(gpu_lease):
    assert gpu_lease.gpus == ()
"""


def test_a_users_tests_measure_with_the_same_machinery(project: Project) -> None:
    starts = project.folder / "starts"
    project.write(SUITE.replace("engine: scripted}", f"engine: scripted, count_file: {starts}}}"))
    (project.folder / "test_user.py").write_text(TEST)
    outcome = project.run("test_user.py", "-v")
    assert "4 passed, 1 skipped" in outcome.text, outcome.text
    assert "needs 99 GPUs" in outcome.text or outcome.junit["test_gpus"].find("skipped") is not None
    # One server for the three tests that use the arm, one for the other arm.
    assert starts.read_text().split() == ["good", "slow"]
    assert project.left_behind() == []


def test_a_missing_suite_says_what_to_write(project: Project) -> None:
    (project.folder / "test_user.py").write_text("def test_it(engine_server):\n    pass\n")
    outcome = project.run("test_user.py")
    assert outcome.code == 1
    assert "@pytest.mark.llmperf(suite=" in outcome.text
