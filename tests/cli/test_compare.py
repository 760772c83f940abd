"""``llmperf compare`` as a user runs it: the margins of a suite, and two options in all four ways."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import llmperf
from tests.unit.history.nights import save

SUITE = """\
suite: suite
why: Margins of its own.
model: {id: m}
engines:
  new: {engine: external, url: "http://127.0.0.1:1"}
  old: {engine: external, url: "http://127.0.0.1:2"}
workloads:
  chat: {kind: words, input_tokens: 8, output_tokens: 8, requests: 4, concurrency: 2}
gates:
  output_throughput: {margin: 40%}
  mean_e2el_ms: {reference: old, margin: 30%}
"""
ORDER = ("neither", "first", "second", "both", "both", "second", "first", "neither")
ARGUMENTS = {"neither": "-tp 8", "first": "-tp 8 --dp", "second": "-tp 8 --mtp", "both": "-tp 8 --dp --mtp"}


@pytest.fixture
def ways(tmp_path: Path) -> Path:
    """Two sessions of two runs of each way, by turns; only both options together give 7 % of throughput."""
    rng = np.random.default_rng(4)
    for place, way in enumerate(ORDER):
        night = math.exp(0.003 * rng.normal())
        for run in range(2):
            throughput = (
                1000 * night * (1.07 if way == "both" else 1.0) * math.exp(0.003 * rng.normal() - 0.002 * place)
            )
            values = {"output_throughput": throughput, "mean_e2el_ms": 8e6 / throughput}
            save(
                tmp_path / way, 1 - place / 24 - run / 1000, values,
                arm=way, case=way, session=f"{place}-{way}", facts={"args": ARGUMENTS[way]},
            )  # fmt: skip
    return tmp_path


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """Six nights in ``before``; one in ``after``, with 20 % less throughput."""
    for night in range(6):
        save(tmp_path / "before", 10 - night, {"output_throughput": 100.0 + night % 2, "mean_e2el_ms": 50.0})
    save(tmp_path / "after", 1, {"output_throughput": 80.0, "mean_e2el_ms": 55.0, "mean_tpot_ms": 9.0})
    (tmp_path / "suite.llmperf.yaml").write_text(SUITE)
    return tmp_path


def test_a_suite_brings_its_gates_and_margins(nights: Path) -> None:
    red = llmperf("compare", "before", "after", cwd=nights)
    assert red.returncode == 1, red.stderr
    done = llmperf("compare", "before", "after", "--suite", "suite.llmperf.yaml", cwd=nights)
    assert done.returncode == 0, done.stdout + done.stderr
    judged = {line.split()[0]: line for line in done.stdout.splitlines() if "   margin " in line}
    assert list(judged) == ["output_throughput", "mean_e2el_ms"]
    assert "margin 40 %" in judged["output_throughput"]
    assert "margin 30 %" in judged["mean_e2el_ms"]
    assert "against baseline of 6 sessions" in judged["mean_e2el_ms"]


def test_cases_that_a_suite_does_not_have_are_judged_as_without(nights: Path) -> None:
    (nights / "suite.llmperf.yaml").write_text(SUITE.replace("  chat:", "  code:"))
    done = llmperf("compare", "before", "after", "--suite", "suite.llmperf.yaml", cwd=nights)
    assert done.returncode == 1
    assert "margin 5 %" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["before", "after", "--suite", "other.llmperf.yaml"], "no saved case is of 'other'; there is suite"),
        (["before", "after", "--suite", "x", "--gate", "mean_e2el_ms"], "not allowed with argument"),
        (["before", "after", "after"], "3 sides: name two, or four"),
    ],
)
def test_what_makes_no_sense(nights: Path, arguments: list[str], said: str) -> None:
    (nights / "other.llmperf.yaml").write_text(SUITE.replace("suite: suite", "suite: other"))
    done = llmperf("compare", *arguments, cwd=nights)
    assert done.returncode == 2
    assert said in done.stderr


def test_what_only_both_options_do_is_credited_to_neither(ways: Path, golden: Callable[[str, str], None]) -> None:
    done = llmperf("compare", *ARGUMENTS, cwd=ways)
    assert (done.returncode, done.stderr) == (0, "")
    golden("compare_four_ways.txt", done.stdout)


def test_one_start_of_each_cannot_tell_an_option_from_luck(ways: Path) -> None:
    for folder in (ways / "second" / "runs").glob("*-second-chat-*"):
        if '"5-second"' in (folder / "run.json").read_text():
            shutil.rmtree(folder)
    done = llmperf("compare", *ARGUMENTS, cwd=ways)
    assert done.returncode == 10
    assert "not compared: second has 1 of at least 2 sessions" in done.stdout


def test_a_folder_that_is_named_twice(ways: Path) -> None:
    done = llmperf("compare", "neither", "first", "first", "both", cwd=ways)
    assert done.returncode == 10
    assert "is in two of the four: first and second" in done.stdout


def test_a_metric_that_one_lacks_hides_no_other(ways: Path) -> None:
    done = llmperf("compare", *ARGUMENTS, "--gate", "mean_ttft_ms", "--gate", "output_throughput", cwd=ways)
    assert done.returncode == 0
    assert "mean_ttft_ms: not compared: neither has no value in session 0-neither" in done.stdout
    assert "only both together" in done.stdout
