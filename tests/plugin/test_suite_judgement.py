"""What a suite says of judgement beside its gates, from the file to the exit status."""

from __future__ import annotations

import pytest

from tests.projects import SUITE, Project

HEAD, _, _ = SUITE.partition("gates:")
SLOW = ("suites", "--llmperf-engine", "slow", "-v")


def quarantine(until: str, metrics: str = "") -> str:
    return f"quarantine:\n  - {{cases: good/*, {metrics}owner: ann, why: a fan of node-07, until: {until}}}\n"


def test_a_quarantined_loss_is_measured_and_shown_and_not_red(project: Project) -> None:
    project.write(SUITE + quarantine("2999-12-24"))
    outcome = project.run(*SLOW)
    assert outcome.code == 0, outcome.text
    assert "good/short::throughput REGRESSED" in outcome.text
    assert "quarantined until 2999-12-24 by ann: a fan of node-07" in outcome.text
    assert outcome.junit["throughput"].find("skipped") is not None
    assert {verdict["word"] for verdict in outcome.cases["good/short"]["verdicts"]} == {"REGRESSED"}


@pytest.mark.parametrize(("until", "metrics"), [("2020-01-01", ""), ("2999-12-24", "metrics: [mean_e2el_ms], ")])
def test_a_quarantine_that_has_ended_or_speaks_of_another_metric_excuses_nothing(
    project: Project, until: str, metrics: str
) -> None:
    project.write(SUITE + quarantine(until, metrics))
    outcome = project.run(*SLOW)
    assert outcome.code == 1, outcome.text
    assert outcome.junit["throughput"].find("failure") is not None


def test_a_quarantined_crash_is_shown_and_not_red(project: Project) -> None:
    project.write(SUITE + quarantine("2999-12-24"))
    outcome = project.run("suites", "--llmperf-engine", "broken", "-v")
    assert outcome.code == 0, outcome.text
    assert "good/short::throughput FAILED" in outcome.text
    assert "quarantined until 2999-12-24 by ann" in outcome.text


def failing(until: int) -> str:
    """Of all requests so many fail, in the measured runs."""
    return SUITE.replace('"close:3", fault_from: 12', f'"error:2", fault_from: 12, fault_until: {until}')


@pytest.mark.parametrize("allowed", ["", "failed_requests: {allowed: 2%, limit: 20%}\n"])
def test_some_requests_may_fail_where_the_suite_says_so(project: Project, allowed: str) -> None:
    project.write(failing(13) + allowed)
    outcome = project.run("suites", "--llmperf-engine", "broken", "-v")
    if not allowed:
        assert outcome.code == 1, outcome.text
        assert "1 of 16 requests failed: 1 x error event" in outcome.text
        return
    assert outcome.code == 0, outcome.text
    assert "failed requests: 1.56 % (2 % may), PASSED" in outcome.text
    (case,) = outcome.cases.values()
    assert case["failures"]["word"] == "PASSED"


def test_too_few_requests_to_exclude_the_limit_count_where_inconclusive_does(project: Project) -> None:
    project.write(SUITE + "failed_requests: {}\n")
    outcome = project.run("suites", "-v")
    assert outcome.code == 0, outcome.text
    assert "good/short::throughput INCONCLUSIVE" in outcome.text
    assert "failed requests INCONCLUSIVE" in outcome.text
    assert project.run("suites", "--llmperf-fail-on=inconclusive").code == 1


def test_a_quarantine_does_not_stand_for_a_baseline(project: Project) -> None:
    stored = HEAD + "gates:\n  output_throughput: {margin: 60%, cv: 10%}\n"
    project.write(stored + quarantine("2999-12-24"))
    outcome = project.run("suites", "-v")
    assert outcome.code == 1, outcome.text
    assert "good/short::throughput NO BASELINE" in outcome.text


def test_a_red_is_not_hidden_behind_a_worse_word_that_does_not_count(project: Project) -> None:
    one_token = SUITE.replace("output_tokens: 16", "output_tokens: 1").replace("gap_s: 0.02}", "first_token_s: 0.2}")
    project.write(one_token.replace("output_throughput: {reference: good", "mean_tpot_ms: {reference: good"))
    outcome = project.run(*SLOW, "--llmperf-fail-on=regressed")
    words = {verdict["metric"]: verdict["word"] for verdict in outcome.cases["good/short"]["verdicts"]}
    assert words == {"mean_tpot_ms": "INVALID", "mean_e2el_ms": "REGRESSED"}
    assert outcome.code == 1, outcome.text


def test_more_failed_requests_than_may_fail_the_case(project: Project) -> None:
    project.write(failing(24) + "failed_requests: {allowed: 2%, limit: 20%}\n")
    outcome = project.run("suites", "--llmperf-engine", "broken", "-v")
    assert outcome.code == 1, outcome.text
    assert "broken: 12 of 64 requests failed, 2 % may" in outcome.text
    assert "12 x error event" in outcome.text
    assert "REGRESSED" not in outcome.text


def test_a_budget_that_is_used_up_leaves_the_rest_not_run_and_red(project: Project) -> None:
    project.write(SUITE.replace("warmup:", "  long: {extends: short, output_tokens: 24}\nwarmup:") + "budget: 1s\n")
    outcome = project.run("suites", "-v")
    assert outcome.code == 1, outcome.text
    assert "good/short::throughput PASSED" in outcome.text, "what was begun is finished"
    assert "not run: chat has used up its budget of 1 s" in outcome.text
    assert "good/long::throughput INVALID" in outcome.text
    assert {run["llmperf"]["case"] for run in outcome.run_files} == {"good/short"}


RELATION = """\
engines:
  good: {engine: scripted}
  slow: {engine: scripted, default: false, gap_s: 0.02}
workloads:
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 16, concurrency: 4}
warmup: {requests: 4}
gates:
  mean_e2el_ms: {reference: good, margin: 90%, only: [good]}
relations:
"""


@pytest.mark.parametrize(("times", "code"), [(1.5, 0), (9, 1)])
def test_a_promise_between_arms_is_a_gate(project: Project, times: float, code: int) -> None:
    head, _, _ = SUITE.partition("engines:")
    promise = f"  good: {{metric: output_throughput, vs: slow, at_least: {times}, margin: 20%}}\n"
    project.write(head + RELATION + promise)
    outcome = project.run("suites", "-v")
    assert outcome.code == code, outcome.text
    words = {verdict["against"]: verdict["word"] for verdict in outcome.cases["good/short"]["verdicts"]}
    assert words == {"good": "PASSED", "slow": "REGRESSED" if code else "PASSED"}
    assert f"against 4 of slow, at least {times:g} x" in outcome.text
