"""From a measured case to words, exit status, JUnit and reports; the engine is a real process that misbehaves."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest

from tests.fake_server import Behaviour, FakeServer
from tests.projects import SUITE, Project

CASE = "good/short"


def only_stored(cv: str = "20%") -> str:
    """The suite with one gate, on a stored baseline."""
    head, _, _ = SUITE.partition("gates:")
    return f"{head}gates:\n  output_throughput: {{margin: 60%, cv: {cv}}}\n"


def test_a_healthy_engine_passes_against_itself(project: Project) -> None:
    outcome = project.run("suites", "-v")
    assert outcome.code == 0, outcome.text
    assert f"{CASE}::throughput PASSED" in outcome.text
    case = outcome.cases[CASE]
    assert {verdict["word"] for verdict in case["verdicts"]} == {"PASSED"}
    assert case["metrics"]["output_throughput"] > 0
    roles = [run["llmperf"]["role"] for run in outcome.run_files if run["llmperf"]["role"] != "warmup"]
    assert roles == [{"A": "reference", "B": "candidate"}[side] for side in "ABBAABBA"]
    delivered = [
        finding
        for run in outcome.run_files
        for finding in run["llmperf"]["findings"]
        if finding["check"] == "delivered_load"
    ]
    assert len(delivered) == len(outcome.run_files)
    assert all("of 4 in flight" in finding["value"] for finding in delivered)


def test_no_two_runs_send_the_same_prompts(project: Project) -> None:
    outcome = project.run("suites")
    plans = [run["llmperf"]["plan"] for run in outcome.run_files]
    assert len(plans) == len(set(plans)) > 8


def test_a_slow_engine_regresses_and_is_confirmed_by_a_fresh_start(project: Project) -> None:
    outcome = project.run("suites", "--llmperf-engine", "slow", "-v")
    assert outcome.code == 1, outcome.text
    assert f"{CASE}::throughput REGRESSED" in outcome.text
    assert f"{CASE}::preconditions PASSED" in outcome.text
    assert "confirmed by a fresh start" in outcome.text
    assert outcome.junit["throughput"].find("failure") is not None
    confirmations = [run for run in outcome.run_files if run["llmperf"]["role"] == "confirmation"]
    assert len(confirmations) == 2
    sessions = {run["llmperf"]["session"] for run in outcome.run_files if run["llmperf"]["arm"] == "slow"}
    assert len(sessions) == 2


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("close:3", "closed"),
        ("error:2", "the fake engine is ill"),
        ("status:400", "fake trouble 400"),
        ("status:503", "fake trouble 503"),
        ("short:5", "asked 16 output tokens, got 5"),
        ("stall:2", "no byte on any stream"),
        ("silent", "no byte on any stream"),
        ("die:3", "process exited with code 9 during"),
    ],
)
def test_a_broken_engine_fails_once_with_its_cause_and_leaves_nothing(project: Project, fault: str, says: str) -> None:
    project.write(SUITE.replace('"close:3"', f'"{fault}"'))
    outcome = project.run("suites", "--llmperf-engine", "broken", "-v", timeout=60)
    assert outcome.code == 1, outcome.text
    assert says in outcome.text
    words = [line.split()[1] for line in outcome.text.splitlines() if "::good/short::" in line.split(" ")[0]]
    assert words.count("FAILED") == 1, outcome.text
    assert "REGRESSED" not in outcome.text
    assert outcome.junit["throughput"].find("failure") is not None
    assert outcome.junit["latency"].find("skipped") is not None
    saved = outcome.run_files[-1]
    assert saved["completed"] + saved["failed"] == saved["num_prompts"]
    done = saved["completed"]
    sources = {"output": {"usage": done}, "chunks": {"none": done}} if done else {"output": {}, "chunks": {}}
    assert saved["llmperf"]["token_source"] == sources
    assert saved["llmperf"]["environment"]["request_fields"] == "stream_options, ignore_eos"
    assert (project.folder / ".llmperf" / "runs" / saved["llmperf"]["id"] / "records.npz").exists()
    assert project.left_behind() == []


def test_a_slow_first_token_is_no_stall(project: Project) -> None:
    slow = SUITE.replace("good: {engine: scripted}", "good: {engine: scripted, first_token_s: 1.5}")
    project.write(slow.replace("requests: 16", "requests: 4").replace("stall_timeout: 2s", "stall_timeout: 5s"))
    outcome = project.run("suites", "-m", "latency")
    assert outcome.code == 0, outcome.text


def test_no_baseline_is_an_error_and_says_how_to_record_one(project: Project) -> None:
    project.write(only_stored())
    outcome = project.run("suites", "-v")
    assert outcome.code == 1
    assert f"{CASE}::throughput NO BASELINE" in outcome.text
    assert "--llmperf-accept=missing" in outcome.text
    assert outcome.junit["throughput"].find("error") is not None


def test_accept_records_a_baseline_with_its_reason_and_never_passes(project: Project) -> None:
    project.write(only_stored())
    outcome = project.run("suites", "--llmperf-accept=missing", "--llmperf-why=first night", "-v")
    assert outcome.code == 0, outcome.text
    assert f"{CASE}::throughput SKIPPED" in outcome.text
    assert "baseline recorded" in outcome.text
    (path,) = (project.folder / "baselines").rglob("*.yaml")
    text = path.read_text()
    assert "first night" in text
    assert path.parts[-3:] == ("chat", "good", "short.yaml")
    judged = project.run("suites", "-v")
    assert judged.code == 0, judged.text
    again = project.run("suites", "--llmperf-accept=missing", "--llmperf-why=second night")
    assert again.code == 0
    assert path.read_text() == text
    slow = project.run("suites", "--llmperf-engine=slow", "-v")
    assert slow.code == 1, slow.text
    assert f"{CASE}::throughput REGRESSED" in slow.text


def test_a_baseline_of_another_workload_is_refused(project: Project) -> None:
    project.write(only_stored())
    project.run("suites", "--llmperf-accept=missing", "--llmperf-why=first night")
    outcome = project.run("suites", "-v", "--llmperf-set", "workloads.short.requests=9")
    assert outcome.code == 1
    assert f"{CASE}::throughput NO BASELINE" in outcome.text
    assert "workload" in outcome.text


PLACED = """
import os
from pytest_llmperf.pipeline import servers
from pytest_llmperf.pipeline.placement import Placement
first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
servers.placement = lambda cores: Placement(CORES)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_client_with_cores_of_its_own_says_so(project: Project) -> None:
    project.write(only_stored())
    conftest = project.folder / "conftest.py"
    conftest.write_text(conftest.read_text() + PLACED.replace("CORES", "client=(last,), engine=(first,)"))
    run = project.run("suites", "-v").run_files[-1]["llmperf"]
    assert run["environment"]["client_placement"] == "pinned"
    assert run["client"]["cores"] == [max(os.sched_getaffinity(0))]


def test_a_baseline_of_another_placement_of_the_client_is_refused(project: Project) -> None:
    project.write(only_stored())
    conftest = project.folder / "conftest.py"
    conftest.write_text(conftest.read_text() + PLACED.replace("CORES", ""))
    project.run("suites", "--llmperf-accept=missing", "--llmperf-why=first night")
    (path,) = (project.folder / "baselines").rglob("*.yaml")
    path.write_text(path.read_text().replace("client_placement: shared", "client_placement: pinned"))
    outcome = project.run("suites", "-v")
    assert f"{CASE}::throughput NO BASELINE" in outcome.text
    assert "client_placement: baseline pinned, here shared" in outcome.text


def test_a_broken_baseline_file_is_named_with_its_line(project: Project) -> None:
    project.write(only_stored())
    project.run("suites", "--llmperf-accept=missing", "--llmperf-why=first night")
    (path,) = (project.folder / "baselines").rglob("*.yaml")
    path.write_text(path.read_text().replace("[[", "[[zero, "))
    outcome = project.run("suites", "-v")
    assert outcome.code == 1
    assert "NO BASELINE" in outcome.text
    assert f"{path.name}:" in outcome.text
    assert "'zero'" in outcome.text


def test_a_word_off_the_list_is_skipped_under_its_own_word(project: Project) -> None:
    project.write(only_stored())
    outcome = project.run("suites", "-v", "--llmperf-fail-on=failed")
    assert outcome.code == 0
    assert f"{CASE}::throughput NO BASELINE" in outcome.text
    assert outcome.junit["throughput"].find("skipped") is not None


def test_inconclusive_is_neither_passed_nor_red_unless_asked(project: Project) -> None:
    project.write(only_stored())
    project.run("suites", "--llmperf-accept=missing", "--llmperf-why=first night")
    project.write(only_stored(cv="50%"))
    outcome = project.run("suites", "-v", "-rA")
    assert outcome.code == 0, outcome.text
    assert f"{CASE}::throughput INCONCLUSIVE" in outcome.text
    assert "1 inconclusive" in outcome.text
    strict = project.run("suites", "-v", "--llmperf-fail-on=inconclusive")
    assert strict.code == 1
    assert f"{CASE}::throughput INCONCLUSIVE" in strict.text
    assert strict.junit["throughput"].find("failure") is not None


def test_a_case_is_measured_once_for_its_items_and_by_one_worker(project: Project) -> None:
    starts = project.folder / "starts"
    two = SUITE.replace("engine: scripted}", f"engine: scripted, count_file: {starts}}}")
    project.write(two.replace("workloads:", "workloads:\n  other: {extends: short, requests: 9}"))
    outcome = project.run("suites", "-n", "2", "-v")
    assert outcome.code == 0, outcome.text
    measured = [run["llmperf"]["case"] for run in outcome.run_files if run["llmperf"]["role"] == "candidate"]
    assert sorted(set(measured)) == ["good/other", CASE]
    assert len(measured) == 8
    spans = sorted(run["llmperf"]["window_ns"] for run in outcome.run_files)
    assert all(before[1] <= after[0] for before, after in pairwise(spans)), "runs overlapped"
    assert set(outcome.cases) == {"good/other", CASE}


def test_junit_carries_the_metrics(project: Project) -> None:
    outcome = project.run("suites")
    properties = {
        element.attrib["name"]: element.attrib["value"] for element in outcome.junit["throughput"].iter("property")
    }
    assert float(properties["output_throughput"]) > 0
    assert properties["llmperf_outcome"] == "PASSED"


def test_an_engine_that_cannot_start_fails_once_with_its_last_lines(project: Project) -> None:
    project.write(SUITE.replace("fault_from: 12}", "fault_from: 12, args: [--no-such-flag]}"))
    outcome = project.run("suites", "--llmperf-engine", "broken", "-v")
    assert outcome.code == 1
    assert "unrecognized arguments: --no-such-flag" in outcome.text
    assert outcome.text.count(" FAILED") >= 1
    words = [line.split()[1] for line in outcome.text.splitlines() if "::good/short::" in line.split(" ")[0]]
    assert words.count("FAILED") == 1
    assert project.left_behind() == []


@pytest.mark.parametrize("dist", ["loadgroup", "worksteal", "loadscope"])
def test_a_case_stays_together_however_tests_are_distributed(project: Project, dist: str) -> None:
    project.write(only_stored())
    outcome = project.run("suites", "-n", "2", "--dist", dist)
    assert outcome.code == 1, outcome.text
    assert [run["llmperf"]["role"] for run in outcome.run_files].count("candidate") == 1


def test_an_endpoints_key_is_used_and_kept_nowhere(project: Project) -> None:
    project.write(only_stored())
    with FakeServer(Behaviour(gap_s=0.001)) as server:
        outcome = project.run(
            "suites", "-v", "--llmperf-endpoint", server.url, LLMPERF_API_KEY="sk-very-secret-1234"
        )  # fmt: skip
        assert "NO BASELINE" in outcome.text, outcome.text
        assert {seen.headers.get("authorization") for seen in server.seen} == {"Bearer sk-very-secret-1234"}
    assert "sk-very-secret" not in outcome.text
    for path in project.folder.rglob("*"):
        if path.is_file():
            assert b"sk-very-secret" not in path.read_bytes(), path


def test_an_endpoint_that_is_not_there_ends_in_seconds(project: Project) -> None:
    outcome = project.run("suites", "-v", "--llmperf-endpoint", "http://127.0.0.1:9", timeout=30)
    assert outcome.code == 1
    assert "nobody answers at http://127.0.0.1:9" in outcome.text
    assert outcome.text.count(" FAILED ") == 1


def test_a_metrics_page_that_never_answers_costs_a_run_its_bound_once_and_is_named(project: Project) -> None:
    project.write(only_stored() + "  acceptance_length: 0.03\n")
    conftest = project.folder / "conftest.py"
    bound = "\nfrom pytest_llmperf.pipeline import servers, execute\n"
    bound += "servers.SCRAPE_TIMEOUT_S = execute.SCRAPE_TIMEOUT_S = 0.3\n"
    conftest.write_text(conftest.read_text() + bound)
    with FakeServer(Behaviour(gap_s=0.001, silent_metrics=True)) as server:
        outcome = project.run("suites", "-v", "--llmperf-endpoint", server.url)
        assert server.scrapes == len(outcome.run_files) > 2
    assert f"{CASE}::throughput NO BASELINE" in outcome.text, outcome.text
    assert f"{CASE}::acceptance INVALID" in outcome.text
    assert "engine_counters: no answer within 0.3 s" in outcome.text


def test_a_variant_is_never_accepted(project: Project) -> None:
    project.write(only_stored())
    outcome = project.run("suites", "--llmperf-engine", "slow", "--llmperf-accept=all", "--llmperf-why=why not")
    assert outcome.code == 1
    assert "slow is a variant of good" in outcome.text
    assert not (project.folder / "baselines").exists()
