"""What pytest collects from suites, and what the options leave of it; no engine is started here."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.projects import SUITE, Outcome, Project

FILE = "suites/chat.llmperf.yaml"


def ids(outcome: Outcome) -> list[str]:
    return [line for line in outcome.text.splitlines() if "::" in line]


def collect(project: Project, *args: str) -> list[str]:
    return ids(project.run("--collect-only", "-q", "suites", *args))


def test_a_case_has_one_item_for_its_preconditions_and_one_for_each_gated_group(project: Project) -> None:
    assert collect(project) == [
        f"{FILE}::good/short::preconditions",
        f"{FILE}::good/short::throughput",
        f"{FILE}::good/short::latency",
    ]


@pytest.mark.parametrize("group", ["preconditions", "throughput", "latency"])
def test_markers_select_items(project: Project, group: str) -> None:
    assert collect(project, "-m", group) == [f"{FILE}::good/short::{group}"]


def test_a_case_and_an_item_can_be_named(project: Project) -> None:
    whole = project.run("--collect-only", "-q", f"{FILE}::good/short")
    assert len(ids(whole)) == 3
    one = project.run("--collect-only", "-q", f"{FILE}::good/short::latency")
    assert ids(one) == [f"{FILE}::good/short::latency"]


def test_markers_are_registered(project: Project) -> None:
    assert project.run("--strict-markers", "--collect-only", "suites").code == 0
    assert "acceptance: speculative acceptance" in project.run("--markers").text


def test_variants_run_only_when_named_and_are_judged_as_the_arm_they_vary(project: Project) -> None:
    assert collect(project, "--llmperf-engine", "broken") == collect(project)


def test_an_unknown_arm_is_a_usage_error_with_a_guess(project: Project) -> None:
    outcome = project.run("suites", "--llmperf-engine", "brokn")
    assert outcome.code == 4
    assert "no suite has an arm 'brokn'; did you mean 'broken'?" in outcome.text


def test_an_override_that_no_suite_knows_is_a_usage_error(project: Project) -> None:
    outcome = project.run("suites", "--llmperf-set", "workloads.short.request=9")
    assert outcome.code == 4
    assert "did you mean 'workloads.short.requests'" in outcome.text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--llmperf-accept=all"], "needs --llmperf-why"),
        (["--llmperf-report=xml:x"], "unknown report 'xml'"),
        (["--llmperf-report=json"], "write KIND:PATH"),
        (["--llmperf-set=x"], "write KEY=VALUE"),
        (["--llmperf-endpoint=host:80"], "must be an http or https URL"),
        (["--llmperf-endpoint="], "must be an http or https URL"),
        (["--llmperf-endpoint=http://"], "must be an http or https URL"),
        (["--llmperf-endpoint=http://[::1"], "--llmperf-endpoint: Invalid IPv6 URL"),
        (["--llmperf-endpoint=http://me:hunter2@host"], "must not hold credentials"),
        (["--llmperf-fail-on=slow"], "'slow' is none of regressed"),
    ],
)
def test_options_that_cannot_be_obeyed_are_usage_errors(project: Project, args: list[str], message: str) -> None:
    outcome = project.run("suites", *args)
    assert outcome.code == 4
    assert message in outcome.text
    assert "hunter2" not in outcome.text
    assert "Traceback" not in outcome.text


def test_all_mistakes_of_a_suite_file_come_at_once_and_nothing_starts(project: Project) -> None:
    bad = (
        SUITE.replace("why:", "wy:")
        .replace("requests: 16", "requests: none")
        .replace("output_throughput", "outputthroughput")
        .replace("reference: good, margin: 90%", "reference: god, margin: 90%")
        .replace("engine: scripted}", "engine: scripted, count_fil: x}")
    )
    project.write(bad)
    outcome = project.run("suites")
    assert outcome.code == 2
    for line in (2, 6, 10, 13, 14):
        assert f"chat.llmperf.yaml:{line}: " in outcome.text, outcome.text
    assert "Traceback" not in outcome.text
    assert not (project.folder / ".llmperf").exists()


def test_an_unset_variable_names_its_line(project: Project) -> None:
    project.write(SUITE.replace("model: {id: fake,", 'model: {id: fake, path: "${NO_SUCH_PLACE}/x",'))
    outcome = project.run("suites")
    assert outcome.code == 2
    assert "chat.llmperf.yaml:3: model.path: ${NO_SUCH_PLACE} is not set" in outcome.text


def test_the_plan_shows_commands_and_starts_nothing(project: Project, golden: Callable[[str, str], None]) -> None:
    outcome = project.run("suites", "--llmperf-plan", "-q")
    assert outcome.code == 0
    assert not (project.folder / ".llmperf").exists()
    import re  # noqa: PLC0415
    import sys  # noqa: PLC0415

    lines = outcome.text[outcome.text.index("= llmperf plan") :].splitlines()[1:]
    text = "\n".join(line for line in lines if line and not line.startswith("---"))
    text = re.sub(r"\S*fake_server\.py", "fake_server.py", text.replace(sys.executable, "python"))
    golden("plan.txt", re.sub(r"^-* ?generated xml.*$|^no tests ran.*$", "", text, flags=re.MULTILINE).strip() + "\n")


def test_the_plan_is_of_one_process(project: Project) -> None:
    outcome = project.run("suites", "--llmperf-plan", "-n", "2")
    assert outcome.code == 4
    assert "--llmperf-plan" in outcome.text
    assert "-n" in outcome.text


def test_preconditions_alone_start_nothing_and_show_live_checks_as_at_start(project: Project) -> None:
    starts = project.folder / "starts"
    project.write(SUITE.replace("engine: scripted}", f"engine: scripted, count_file: {starts}}}"))
    outcome = project.run("suites", "-m", "preconditions", "-v")
    assert outcome.code == 0, outcome.text
    assert not starts.exists()
    assert "engine_ready: at start" in outcome.text


def test_every_option_is_documented() -> None:
    from pathlib import Path  # noqa: PLC0415

    import pytest_llmperf.plugin.options as options  # noqa: PLC0415, PLR0402

    declared = set(re.findall(r'"(--llmperf-[a-z-]+)"', Path(options.__file__).read_text()))
    documented = (Path(__file__).parents[2] / "docs" / "options.md").read_text()
    assert declared
    assert not [option for option in declared if f"`{option}" not in documented]


def test_an_unknown_arm_is_said_by_the_controller_too(project: Project) -> None:
    outcome = project.run("suites", "--llmperf-engine", "brokn", "-n", "2")
    assert outcome.code == 4
    assert "no suite has an arm 'brokn'; did you mean 'broken'?" in outcome.text


def test_a_broken_suite_is_not_followed_by_doubt_about_the_command_line(project: Project) -> None:
    project.write(SUITE.replace("why:", "wy:"))
    outcome = project.run("suites", "--llmperf-engine", "slow", "--llmperf-set", "workloads.short.requests=4")
    assert outcome.code == 2
    assert "chat.llmperf.yaml:2: wy: " in outcome.text
    assert "no suite has" not in outcome.text


def test_the_plan_runs_no_other_tests_either(project: Project) -> None:
    (project.folder / "test_user.py").write_text("def test_it():\n    raise AssertionError('it ran')\n")
    outcome = project.run("test_user.py", "--llmperf-plan")
    assert outcome.code == 0, outcome.text
    assert "it ran" not in outcome.text


def test_a_report_that_cannot_be_written_is_said_and_red(project: Project) -> None:
    (project.folder / "blocked").write_text("a file, not a folder")
    outcome = project.run("suites", "-m", "preconditions", "--llmperf-report", "json:blocked/results.json")
    assert outcome.code == 1
    assert "blocked/results.json: cannot be written" in outcome.text
    assert "Traceback" not in outcome.text


def test_a_session_without_cases_leaves_no_report_of_an_older_one(project: Project) -> None:
    (project.folder / "results.json").write_text("of yesterday")
    outcome = project.run("suites", "-k", "nothing")
    assert outcome.code == 5
    assert outcome.cases == {}


def test_collecting_a_suite_imports_nothing_heavy(project: Project) -> None:
    (project.folder / "test_user.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    heavy = {'numpy', 'scipy', 'requests', 'uvloop', 'xllamacpp', 'gguf', 'filelock'} & set(sys.modules)\n"
        "    assert not heavy\n"
    )
    assert project.run("suites", "test_user.py", "-k", "test_it").code == 0


def test_two_suites_of_one_name_are_a_mistake(project: Project) -> None:
    project.write(name="suites/other.llmperf.yaml")
    outcome = project.run("suites", "--collect-only")
    assert outcome.code == 4
    assert "are both called 'chat', and would have the same baselines" in outcome.text
