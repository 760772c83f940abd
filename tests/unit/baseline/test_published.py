"""Published numbers: read strictly, found beside a case's baseline, moved with it, and never taken for one."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf import judge
from pytest_llmperf.baseline import Store, published
from pytest_llmperf.errors import BaselineError
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.measurement import Measurement, Observation
from pytest_llmperf.model.published import Published
from pytest_llmperf.reports import publications
from tests.unit.baseline.examples import EXAMPLE, GOLDEN

MACHINE, SUITE, CASE = "8x-nvidia-h200", "deepseek-r1-h200", "vllm/random-4000-200"
TEXT = """\
# One run on somebody else's machine.
kind: published
case: vllm/random-4000-200
source: {document: H200 report, table: vLLM 0.11.0 TP8, url: "https://example.org/h200"}
conditions: {hardware: 8x H200 SXM, versions: vLLM 0.11.0, load: 500 prompts of 4000/200 at once}
expires: 2027-11-30
metrics:
  output_throughput: {value: 753.67, definition: output tokens / duration}
  total_token_throughput: {value: 15808.55, definition: unknown, source: {table: headline}, expires: 2026-06-30}
  tok_s_per_user:
    - {value: 253, definition: "output tokens / e2el, with prefill", conditions: {load: batch 1}}
    - {value: 207, definition: unknown, conditions: {load: batch 1, hardware: unknown}}
"""
USUAL = "hardware 8x H200 SXM; versions vLLM 0.11.0; load "
NUMBERS = (
    Published(
        metric="output_throughput", value=753.67, definition="output tokens / duration", expires=date(2027, 11, 30),
        source="H200 report, vLLM 0.11.0 TP8, https://example.org/h200",
        conditions=f"{USUAL}500 prompts of 4000/200 at once",
    ),
    Published(
        metric="total_token_throughput", value=15808.55, definition="unknown", expires=date(2026, 6, 30),
        source="H200 report, headline, https://example.org/h200",
        conditions=f"{USUAL}500 prompts of 4000/200 at once",
    ),
    Published(
        metric="tok_s_per_user", value=253, definition="output tokens / e2el, with prefill",
        expires=date(2027, 11, 30), source="H200 report, vLLM 0.11.0 TP8, https://example.org/h200",
        conditions=f"{USUAL}batch 1",
    ),
    Published(
        metric="tok_s_per_user", value=207, definition="unknown", expires=date(2027, 11, 30),
        source="H200 report, vLLM 0.11.0 TP8, https://example.org/h200",
        conditions="hardware unknown; versions vLLM 0.11.0; load batch 1",
    ),
)  # fmt: skip


def shelved(root: Path, text: str = TEXT, hardware: str = MACHINE) -> Store:
    store = Store(root)
    path = store.published_path(hardware, SUITE, CASE)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return store


def test_every_number_has_its_source_conditions_and_definition() -> None:
    found = published.parse(TEXT, "f")
    assert found.case == CASE
    assert found.numbers == NUMBERS


def test_what_is_published_for_a_case_is_found_on_its_hardware_and_on_any(tmp_path: Path) -> None:
    store = shelved(tmp_path)
    assert store.published_path(MACHINE, SUITE, CASE).name == "random-4000-200.published.yaml"
    assert store.published(MACHINE, SUITE, CASE) == NUMBERS
    assert store.published("2x-cpu", SUITE, CASE) == ()
    assert store.published(MACHINE, SUITE, "vllm/other") == ()
    shelved(tmp_path, TEXT, "any")
    assert store.published("2x-cpu", SUITE, CASE) == NUMBERS
    assert store.published("any", SUITE, CASE) == NUMBERS
    assert store.read(MACHINE, SUITE, CASE) is None, "it is no baseline"


def test_a_number_can_stand_beside_what_was_measured() -> None:
    runs = Measurement({"output_throughput": (Observation(829.0, "a", 0), Observation(829.1, "a", 1))})
    beside = judge.beside(NUMBERS[0], METRICS["output_throughput"], runs, date(2026, 11, 30))
    assert beside is not None
    assert beside.change == pytest.approx(0.1, abs=0.001)


WRONG = [
    ("kind: published", "kind: measured", "f:2: kind: 'measured' must be 'published': the file's name ends in"),
    ("case: ", "cases: ", "f:3: cases: unknown key; did you mean 'case'?"),
    ("source: {document: H200 report, ", "source: {", "f:4: source: document missing; add it, as 'unknown' where"),
    ("source: {document: H200 report,", "source: {documents: H200 report,", "f:4: source.documents: unknown key; did"),
    ("versions: vLLM 0.11.0, ", "", "f:5: conditions: versions missing; add it, as 'unknown' where the document does"),
    ("expires: 2027-11-30\n", "expires: never\n", "f:6: expires: 'never' is no date; write it as 2026-11-30"),
    ("expires: 2027-11-30\n", "", "f:2: expires missing"),
    ("value: 753.67", "value: 0", "f:8: metrics.output_throughput.value: '0' cannot be a value; a ratio metric must"),
    ("value: 753.67", "value: fast", "f:8: metrics.output_throughput.value: 'fast' cannot be a value"),
    ("value: 753.67", "value: .inf", "f:8: metrics.output_throughput.value: '.inf' cannot be a value"),
    (", definition: output tokens / duration", "", "f:8: metrics.output_throughput: definition missing; add it, as"),
    ("  output_throughput:", "  output_throughputs:", "f:8: metrics.output_throughputs: unknown metric; did you mean"),
    ("{table: headline}", "headline", "f:9: metrics.total_token_throughput.source: must be a mapping"),
    ("{value: 207, ", "{values: 207, ", "f:12: metrics.tok_s_per_user.values: unknown key; did you mean 'value'?"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong", "message"), WRONG, ids=[wrong.strip() or right for right, wrong, _ in WRONG]
)
def test_a_mistake_is_named_with_its_line_and_the_way_out(right: str, wrong: str, message: str) -> None:
    assert right in TEXT
    with pytest.raises(BaselineError) as caught:
        published.parse(TEXT.replace(right, wrong, 1), "f")
    assert message in str(caught.value)


@pytest.mark.parametrize("metrics", ["{}", "{output_throughput: []}"])
def test_a_file_without_a_number_is_a_mistake(metrics: str) -> None:
    text = TEXT[: TEXT.index("metrics:")] + f"metrics: {metrics}\n"
    with pytest.raises(BaselineError, match=r"f:7: metrics.* is (an )?empty"):
        published.parse(text, "f")


@given(st.text())
def test_no_text_makes_anything_else_than_numbers_or_a_baseline_error(text: str) -> None:
    with pytest.raises(BaselineError):
        published.parse(text, "f")


def test_numbers_of_another_case_are_not_this_ones(tmp_path: Path) -> None:
    store = shelved(tmp_path, TEXT.replace("case: vllm/", "case: sglang/"))
    with pytest.raises(BaselineError, match="is published for 'sglang/random-4000-200', not for 'vllm/random"):
        store.published(MACHINE, SUITE, CASE)


def test_no_case_can_be_called_like_a_file_of_published_numbers(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for place in (store.path, store.published_path):
        with pytest.raises(BaselineError, match=r"no case can end in '\.published'.*; rename the workload"):
            place(MACHINE, SUITE, "vllm/chat.published")
    assert store.path(MACHINE, SUITE, "vllm/qwen2.5").name == "qwen2.5.yaml"
    assert store.published_path(MACHINE, SUITE, "vllm/qwen2.5").name == "qwen2.5.published.yaml"


def test_a_renamed_case_takes_its_published_numbers_along_as_they_were_written(tmp_path: Path) -> None:
    store = shelved(tmp_path)
    store.write_case(MACHINE, SUITE, EXAMPLE, any_hardware=False)
    moved = store.rename(SUITE, CASE, "vllm/long")
    assert [path.name for path in moved] == ["long.yaml", "long.published.yaml"]
    assert moved[1].read_text() == TEXT.replace(CASE, "vllm/long")
    assert store.read(MACHINE, SUITE, "vllm/long") == replace(EXAMPLE, case="vllm/long")
    assert len(store.published(MACHINE, SUITE, "vllm/long")) == len(NUMBERS)
    assert [path.name for path in sorted(moved[0].parent.iterdir())] == ["long.published.yaml", "long.yaml"]


def test_the_table_marks_what_has_expired() -> None:
    lines = publications.render("f", CASE, NUMBERS, date(2026, 6, 30))
    assert "\n".join(lines) + "\n" == GOLDEN.with_name("published_show.txt").read_text()
