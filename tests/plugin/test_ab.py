"""``--llmperf-ab``: two arms of a suite against each other."""

from __future__ import annotations

import pytest

from tests.projects import Project

SUITE = """\
suite: chat
why: Two versions.
model: {id: fake, weights: dummy}
stall_timeout: 2s
engines:
  old: {engine: scripted, count_file: "STARTS"}
  new: {extends: old}
  slow: {extends: old, default: false, gap_s: 0.02}
workloads:
  short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 16, concurrency: 4}
warmup: {requests: 4}
gates:
  output_throughput: {margin: 60%}
"""


@pytest.fixture
def pair(project: Project) -> Project:
    project.write(SUITE.replace("STARTS", str(project.folder / "starts")))
    return project


def starts(project: Project) -> list[str]:
    return (project.folder / "starts").read_text().split()


def test_b_is_judged_against_a_by_turns_each_run_on_a_start_of_its_own(pair: Project) -> None:
    outcome = pair.run("suites", "--llmperf-ab=old,new")
    assert outcome.code == 0, outcome.text
    assert set(outcome.cases) == {"new/short"}
    (verdict,) = outcome.cases["new/short"]["verdicts"]
    assert (verdict["word"], verdict["against"]) == ("PASSED", "old")
    assert "arm new against old" in outcome.text
    measured = [run["llmperf"] for run in outcome.run_files if run["llmperf"]["role"] in {"candidate", "reference"}]
    assert [run["arm"] for run in measured] == ["old", "new", "new", "old"] * 2
    assert len({run["session"] for run in measured}) == 8
    assert starts(pair) == ["old", "new", "new", "old"] * 2
    assert pair.left_behind() == []


def test_a_slower_b_is_red_and_cannot_be_accepted_from_here(pair: Project) -> None:
    outcome = pair.run("suites", "--llmperf-ab=old,slow")
    assert outcome.code == 1
    assert "throughput REGRESSED" in outcome.text
    assert "confirmed by a fresh start" in outcome.text
    assert "--llmperf-ab=old,slow" in outcome.text, "how to run it again"
    assert "accept:" not in outcome.text


def test_the_plan_shows_it(pair: Project) -> None:
    outcome = pair.run("suites", "--llmperf-ab=old,new", "--llmperf-plan")
    assert "ABBAABBA (A reference, B candidate), again while undecided, up to 8 of each" in outcome.text
    assert "1 case, 8 engine starts" in outcome.text
    assert not (pair.folder / "starts").exists()


@pytest.mark.parametrize(("arms", "starts"), [("old,ours", 4), ("ours,theirs", 0)])
def test_the_plan_counts_no_start_of_a_server_that_is_not_ours(pair: Project, arms: str, starts: int) -> None:
    servers = "".join(f"  {name}: {{engine: external, url: http://127.0.0.1/{name}}}\n" for name in ("ours", "theirs"))
    pair.write(SUITE.replace("workloads:", f"{servers}workloads:"))
    outcome = pair.run("suites", f"--llmperf-ab={arms}", "--llmperf-plan")
    assert f"1 case, {starts} engine starts" in outcome.text, outcome.text


@pytest.mark.parametrize("fixture", ["engine_server.url", "llmperf.measure()"])
def test_the_fixtures_do_not_take_part(pair: Project, fixture: str) -> None:
    (pair.folder / "test_user.py").write_text(
        "import pytest\n\n\n@pytest.mark.llmperf(suite='suites/chat.llmperf.yaml', engine='new')\n"
        f"def test_it({fixture.partition('.')[0]}):\n    {fixture}\n"
    )
    outcome = pair.run("test_user.py", "--llmperf-ab=old,new")
    assert outcome.code == 1
    assert "--llmperf-ab=old,new is for the cases of suites" in outcome.text
    assert not (pair.folder / "starts").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--llmperf-ab=old"], "write two arms of the suite"),
        (["--llmperf-ab=old,old"], "write two arms of the suite"),
        (["--llmperf-ab=old,nwe"], "no suite has an arm 'nwe'; did you mean 'new'?"),
        (["--llmperf-ab=old,new", "--llmperf-engine=old"], "leave out --llmperf-engine"),
        (["--llmperf-ab=old,new", "--llmperf-endpoint=http://127.0.0.1:1"], "leave out --llmperf-endpoint"),
        (["--llmperf-ab=old,new", "--llmperf-accept=all", "--llmperf-why=x"], "leave out --llmperf-accept"),
    ],
)
def test_what_cannot_be_obeyed_is_an_error_of_usage(pair: Project, arguments: list[str], said: str) -> None:
    outcome = pair.run("suites", *arguments)
    assert outcome.code == 4, outcome.text
    assert said in outcome.text
