"""Two red cases of one server: both are confirmed by one fresh start of it."""

from __future__ import annotations

import signal

import pytest

from tests.projects import Outcome, Project

SUITE = """\
suite: chat
why: Two cases on one server.
model: {id: fake, weights: dummy}
stall_timeout: 2s
engines:
  good: {engine: scripted, count_file: "STARTS"}
  slow: {extends: good, variant_of: good, default: false, gap_s: 0.02}
workloads:
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 16, concurrency: 4}
  long: {extends: short, output_tokens: 24}
warmup: {requests: 4}
gates:
  output_throughput: {margin: 40%, cv: 10%}
"""


@pytest.fixture
def recorded(project: Project) -> Project:
    """The baselines of both cases are there, by an engine that is four times as fast as the one under judgement."""
    project.write(SUITE.replace("STARTS", str(project.folder / "starts")))
    outcome = project.run("suites", "--llmperf-accept=missing", "--llmperf-why=a test")
    assert outcome.code == 0, outcome.text
    (project.folder / "starts").unlink()
    return project


def starts(project: Project) -> list[str]:
    return (project.folder / "starts").read_text().split()


def sessions(outcome: Outcome, case: str, role: str) -> set[str]:
    runs = [run["llmperf"] for run in outcome.run_files]
    return {run["session"] for run in runs if (run["arm"], run["case"], run["role"]) == ("slow", case, role)}


@pytest.mark.parametrize("workers", [[], ["-n", "2"], ["-n", "2", "--dist", "loadscope"]])
def test_one_fresh_start_confirms_both(recorded: Project, workers: list[str]) -> None:
    outcome = recorded.run("suites", "--llmperf-engine", "slow", *workers)
    assert outcome.code == 1, outcome.text
    assert {case: result["verdicts"][0]["word"] for case, result in outcome.cases.items()} == {
        "good/short": "REGRESSED", "good/long": "REGRESSED",
    }  # fmt: skip
    assert outcome.text.count("confirmed by a fresh start") >= 2
    assert starts(recorded) == ["slow", "slow"]
    before, after = (sessions(outcome, "good/short", role) for role in ("candidate", "confirmation"))
    assert before == sessions(outcome, "good/long", "candidate")
    assert after == sessions(outcome, "good/long", "confirmation")
    assert len(before | after) == 2
    assert recorded.left_behind() == []


def test_who_stops_at_the_first_red_waits_for_no_other_case(recorded: Project) -> None:
    outcome = recorded.run("suites", "--llmperf-engine", "slow", "-x")
    assert outcome.code == 1, outcome.text
    assert set(outcome.cases) == {"good/short"}
    assert {run["llmperf"]["case"] for run in outcome.run_files if run["llmperf"]["arm"] == "slow"} == {"good/short"}
    assert starts(recorded) == ["slow", "slow"]


def test_healthy_cases_share_their_start_and_need_no_other(recorded: Project) -> None:
    outcome = recorded.run("suites")
    assert outcome.code == 0, outcome.text
    assert starts(recorded) == ["good"]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_red_whose_confirmation_is_interrupted_is_told(recorded: Project, stop: signal.Signals) -> None:
    with recorded.started("suites", "--llmperf-engine", "slow", "-x") as process:
        recorded.wait_for(".llmperf/runs/*-good-short-confirmation-*")
        process.send_signal(stop)
        outcome = recorded.outcome(process)
    assert outcome.code == 2, outcome.text
    (verdict,) = outcome.cases["good/short"]["verdicts"]
    assert verdict["word"] == "REGRESSED"
    assert "unconfirmed: the session ended before a fresh start" in outcome.text
    assert recorded.left_behind() == []
