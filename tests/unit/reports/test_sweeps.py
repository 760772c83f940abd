from __future__ import annotations

from dataclasses import replace

from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.reports.sweeps import render


def result(load: str, throughput: float, latency: float, word: Word = Word.PASSED) -> CaseResult:
    return CaseResult(
        suite="chat",
        case=f"vllm/words/{load}",
        nodeid=load,
        arm="vllm",
        hardware="any",
        metrics={"output_throughput": throughput, "mean_e2el_ms": latency},
        verdicts=(Verdict(metric="output_throughput", word=word, margin=0.05),),
    )


SWEEP = [result("c1", 100, 50), result("c4", 390, 52), result("c16", 800, 110), result("c64", 820, 430)]


def test_a_sweep_is_one_line_with_its_knee() -> None:
    [line] = render(SWEEP)
    assert line == (
        "sweep of chat: vllm/words, 4 loads: knee at c4, 390 tok/s at a mean E2EL of 52 ms; most at c64, 820 tok/s at a"
        " mean E2EL of 430 ms"
    )


def test_a_knee_may_be_the_highest_throughput() -> None:
    assert render([*SWEEP[:2], result("c2", 190, 51)]) == [
        "sweep of chat: vllm/words, 3 loads: knee at c4, 390 tok/s at a mean E2EL of 52 ms, the highest throughput too"
    ]


def test_what_was_not_measured_well_is_no_point() -> None:
    """A client that could not keep up looks like a knee."""
    invalid = result("c128", 9000, 1, Word.INVALID)
    failed = replace(result("c256", 9000, 1), failure="died")
    unmeasured = replace(result("c512", 9000, 1), metrics={})
    assert render([*SWEEP, invalid, failed, unmeasured]) == render(SWEEP)


def test_cases_of_one_load_are_no_sweep() -> None:
    alone = [replace(each, case="vllm/" + each.nodeid) for each in SWEEP]
    assert render([*alone, *SWEEP[:2]]) == []
