"""What ``--llmperf-plan`` says of a suite's judgement; nothing is started for it."""

from __future__ import annotations

from pathlib import Path

from pytest_llmperf import suitefile
from pytest_llmperf.pipeline import plan

SUITE = """\
suite: chat
model: {id: m}
engines:
  a: {engine: external, url: "http://127.0.0.1:1"}
  b: {engine: external, url: "http://127.0.0.1:2"}
workloads:
  words: {kind: words, input_tokens: 64, output_tokens: 128, requests: 32}
load: burst
gates:
  output_throughput: auto
relations:
  b: {metric: output_throughput, vs: a, at_least: 1.1, margin: 5%}
"""
FURTHER = """\
failed_requests: {}
quarantine:
  - {cases: "b/*", metrics: [output_throughput], owner: me, why: known, until: 2026-12-24}
budget: 5h
"""


def lines(folder: Path, text: str) -> list[str]:
    path = folder / "chat.llmperf.yaml"
    path.write_text(text)
    cases = suitefile.expand(suitefile.load_suite(path, overrides={}, environ={}))
    return plan.describe([(case.id, case, ["throughput"]) for case in cases], [case.arm for case in cases], folder)


def test_each_gate_says_its_margin_its_promise_and_its_reference(tmp_path: Path) -> None:
    gates = [line.strip() for line in lines(tmp_path, SUITE) if line.strip().startswith("gate")]
    auto = "gate       output_throughput: margin auto (by the calibration in the baseline) against the stored baseline"
    assert gates == [auto, auto, "gate       output_throughput: at least 1.1 times as good, margin 5 % against a"]


def test_a_case_against_its_baseline_and_an_arm_is_measured_for_both(tmp_path: Path) -> None:
    runs = [line.strip() for line in lines(tmp_path, SUITE) if line.strip().startswith("runs")]
    looks = "against the baseline after 1, 3, 5 runs, until decided"
    assert runs == [f"runs       {looks}", f"runs       ABBAABBA (A reference, B candidate); {looks}"]


def test_what_is_excused_and_bounded_is_said_where_a_suite_says_it(tmp_path: Path) -> None:
    plain, whole = lines(tmp_path, SUITE), lines(tmp_path, SUITE + FURTHER)
    added = [line for line in whole if line not in plain]
    assert added == [
        "chat may take 300 min; then no further look is taken, and what has not begun is not run",
        *["    failures   0.1 % of the requests may fail, and 1 % must be excluded"] * 2,
        "    excused    output_throughput quarantined until 2026-12-24 by me: known",
    ]
    assert whole[1] == added[0]
    assert whole.index(added[-1]) > whole.index("b/words")
