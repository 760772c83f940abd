"""Workloads from files, from a suite to the words in the terminal; the engine is a fake server of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import llmperf
from tests.projects import SUITE, Project

CASE = "good/short"
WORDS = "short: {kind: words, input_tokens: 16, output_tokens: 16, requests: 16, concurrency: 4}"


def only_recorded(workload: str, **engine: object) -> str:
    """The suite with one workload and one gate on a stored baseline, which ``--llmperf-accept`` records."""
    head, _, _ = SUITE.partition("gates:")
    assert WORDS in head
    options = "".join(f", {key}: {value}" for key, value in engine.items())
    text = head.replace(WORDS, workload).replace("good: {engine: scripted}", f"good: {{engine: scripted{options}}}")
    return f"{text}gates:\n  output_throughput: {{margin: 60%}}\n"


RECORD = ("--llmperf-accept=missing", "--llmperf-why=a test", "-v")


def test_a_file_that_is_not_here_skips_the_case_before_any_engine_starts(project: Project) -> None:
    project.write(only_recorded("short: {kind: custom, path: gone.jsonl, output_tokens: 16, requests: 8, burst: true}"))
    outcome = project.run("suites", "-v")
    assert outcome.code == 0, outcome.text
    assert f"{CASE}::throughput skipped" in outcome.text or f"{CASE}::throughput SKIPPED" in outcome.text
    assert f"no file {project.folder / 'suites' / 'gone.jsonl'}, which path of workload 'short' names" in outcome.text
    assert not (project.folder / ".llmperf" / "servers").exists()


@pytest.mark.parametrize(
    ("line", "sha256", "says"),
    [
        ('{"prompt": 5}', "", "lines.jsonl:1: needs either"),
        ('{"prompt": "x"}', ", sha256: " + "ab" * 32, "is another file than path of workload 'short' asks for"),
        ('{"prompt": "x"}', "", "1 of 1 prompts are fit, and requests: 8 asks for more"),
    ],
)
def test_a_file_that_is_not_as_it_must_be_makes_the_case_invalid_before_any_engine_starts(
    line: str, sha256: str, says: str, project: Project
) -> None:
    workload = f"short: {{kind: custom, path: lines.jsonl{sha256}, output_tokens: 16, requests: 8, burst: true}}"
    project.write(only_recorded(workload))
    project.write(line, "suites/lines.jsonl")
    outcome = project.run("suites", "-v")
    assert outcome.code == 1, outcome.text
    assert f"{CASE}::throughput INVALID" in outcome.text
    assert says in outcome.text
    assert not (project.folder / ".llmperf" / "servers").exists()


def test_the_prompts_of_a_file_are_dealt_out(project: Project) -> None:
    """Three recorded runs and at least two warm-ups: no prompt of the file is sent twice."""
    project.write(
        only_recorded("short: {kind: custom, path: lines.jsonl, output_tokens: 16, requests: 8, burst: true}")
    )
    project.write("".join(json.dumps({"prompt": f"line {i}"}) + "\n" for i in range(200)), "suites/lines.jsonl")
    outcome = project.run("suites", *RECORD)
    assert f"{CASE}::throughput baseline recorded" in outcome.text or outcome.code == 0, outcome.text
    plans = [run["llmperf"]["plan"] for run in outcome.run_files]
    assert len(plans) == len(set(plans)) >= 5
    [workload] = {run["llmperf"]["asked"]["workload"]["data"]["sha256"] for run in outcome.run_files}
    assert len(workload) == 64


@pytest.mark.parametrize(("expected", "word"), [("[40%, 60%]", "skipped"), ("[0, 10%]", "INVALID")])
def test_declared_prefix_hits_are_valid_and_others_are_not(expected: str, word: str, project: Project) -> None:
    workload = (
        "short: {kind: shared-prefix, vocab: 500, input_tokens: 16, prefix_tokens: 8, output_tokens: 16, requests: 8, "
        f"burst: true, expect_prefix_hits: {expected}}}"
    )
    project.write(only_recorded(workload, cached_tokens=9))
    outcome = project.run("suites", *RECORD)
    assert f"{CASE}::throughput {word}".lower() in outcome.text.lower(), outcome.text
    refused = "nothing was recorded: output_throughput: prefix_cache: 50.0% of prompt tokens"
    assert (refused in outcome.text) == (word == "INVALID")


DATA = Path(__file__).parents[1] / "data"


def test_the_seeds_of_vllms_prompts_are_told_and_count_up(project: Project) -> None:
    pytest.importorskip("tokenizers")
    text = only_recorded("short: {kind: random, input_tokens: 16, output_tokens: 16, requests: 8, burst: true}")
    model = f"{{id: fake, weights: dummy, path: {DATA / 'tokenizers' / 'bytelevel'}}}"
    project.write(text.replace("{id: fake, weights: dummy}", model))
    outcome = project.run("suites", *RECORD, "--llmperf-seed=42")
    measured = [run["llmperf"] for run in outcome.run_files if run["llmperf"]["role"] != "warmup"]
    assert [run["seed"] for run in measured] == list(range(42, 42 + len(measured))), outcome.text
    warm_ups = [run["llmperf"]["seed"] for run in outcome.run_files if run["llmperf"]["role"] == "warmup"]
    assert warm_ups[:2] == [41, 40]


def test_conversations(project: Project) -> None:
    project.write(only_recorded(WORDS[:-1] + ", api: chat, turns: 3, expect_prefix_hits: [0, 1]}"))
    outcome = project.run("suites", *RECORD)
    assert {run["completed"] for run in outcome.run_files} == {4, 16}, outcome.text
    assert f"{CASE}::throughput skipped".lower() in outcome.text.lower()


def test_raw_responses_on_request_and_what_report_says_of_them(project: Project) -> None:
    project.write(only_recorded(WORDS))
    outcome = project.run("suites", *RECORD, "--llmperf-set", "keep_raw=all")
    runs = [run["llmperf"] for run in outcome.run_files]
    kept = [finding for run in runs for finding in run["findings"] if finding["check"] == "raw_responses"]
    assert len(kept) == len(runs) > 3, outcome.text
    assert {finding["status"] for finding in kept} == {"pass"}
    plain = project.run("suites", *RECORD, "--llmperf-accept=all", "--llmperf-save=plain")
    digests = {
        json.loads(file.read_text())["llmperf"]["workload"] for file in project.folder.glob("plain/runs/*/run.json")
    }
    assert digests == {run["workload"] for run in runs}, plain.text
    folder = project.folder / ".llmperf" / "runs" / runs[-1]["id"]
    told = llmperf("report", str(folder), cwd=project.folder)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "raw responses, parsed again: 16 of 16, as in the columns" in told.stdout
    raw = next((folder / "raw").iterdir())
    raw.write_bytes(raw.read_bytes().replace(b'"completion_tokens": 16', b'"completion_tokens": 17'))
    told = llmperf("report", str(folder), cwd=project.folder)
    assert told.returncode == 10
    assert "16 of 16, differ from the columns: " in told.stdout
