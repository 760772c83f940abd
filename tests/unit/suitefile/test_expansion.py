from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf import suitefile
from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.suite import Suite
from pytest_llmperf.suitefile.document import parse
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.structure import validate
from pytest_llmperf.suitefile.workloads import resolve_workloads
from tests.unit.suitefile.conftest import BASE, Load, with_line

ARM = "  toy: {engine: toy}"
ARMS = """\
  toy: {engine: toy}
  damaged: {extends: toy, variant_of: toy, default: false}
  slow: {extends: toy, variant_of: toy, default: false}
  old: {engine: toy, default: false}
  new: {engine: toy}"""


def ids(suite: Suite, *engines: str) -> list[str]:
    return [case.id for case in suitefile.expand(suite, engines=engines)]


def test_default_arms_run_when_none_is_named(load: Load) -> None:
    suite = load(with_line(ARM, ARMS))
    assert ids(suite) == ["toy/words", "new/words"]


def test_named_arms_run_whatever_their_default_in_the_order_of_the_file(load: Load) -> None:
    suite = load(with_line(ARM, ARMS))
    assert ids(suite, "new", "old") == ["old/words", "new/words"]


def test_a_variant_has_the_case_ids_of_its_arm(load: Load) -> None:
    [case] = suitefile.expand(load(with_line(ARM, ARMS)), engines=["damaged"])
    assert case.id == "toy/words"
    assert case.arm.name == "damaged"


def test_an_unknown_name_is_refused_with_a_guess(load: Load) -> None:
    suite = load(with_line(ARM, ARMS))
    with pytest.raises(UsageError, match=r"--llmperf-engine: 'damagd' is no arm of chat; did you mean 'damaged'\?"):
        ids(suite, "damagd")
    assert suitefile.knows(suite, "damaged")
    assert not suitefile.knows(suite, "damagd")


def test_two_arms_with_the_same_ids_cannot_run_at_once(load: Load) -> None:
    suite = load(with_line(ARM, ARMS))
    with pytest.raises(UsageError, match="'toy' and 'slow' of chat are both judged as 'toy'"):
        ids(suite, "slow", "toy")


def test_cases_of_an_arm_are_adjacent(load: Load) -> None:
    suite = load(with_line(ARM, ARMS).replace("load: burst", "loads: {c1: {concurrency: 1}, all: {burst: true}}"))
    assert ids(suite) == ["toy/words/c1", "toy/words/all", "new/words/c1", "new/words/all"]


def test_the_matrix_multiplies_and_names(load: Load) -> None:
    text = (
        BASE.replace("load: burst\n", "") + "matrix: {requests: [8], input_tokens: [1, 2], request_rate: [0.5, 10]}\n"
    )
    cases = suitefile.expand(load(text))
    assert [case.id for case in cases] == [
        "toy/words-input_tokens-1-requests-8/request_rate-0.5",
        "toy/words-input_tokens-1-requests-8/request_rate-10",
        "toy/words-input_tokens-2-requests-8/request_rate-0.5",
        "toy/words-input_tokens-2-requests-8/request_rate-10",
    ]
    assert [(case.workload.input_tokens, case.workload.requests, case.load.value) for case in cases] == [
        (1, 8, 0.5), (1, 8, 10.0), (2, 8, 0.5), (2, 8, 10.0),
    ]  # fmt: skip


def test_a_workload_with_its_own_load_keeps_it(load: Load) -> None:
    own = "  own: {kind: words, input_tokens: 1, output_tokens: 1, requests: 1, concurrency: 2}\nload: burst"
    suite = load(with_line("load: burst", own).replace("load: burst", "matrix: {concurrency: [1, 4]}"))
    assert ids(suite) == ["toy/words/concurrency-1", "toy/words/concurrency-4", "toy/own"]


def test_gates_hold_where_only_says(load: Load) -> None:
    text = with_line(ARM, ARMS).replace(
        "gates:\n",
        """\
matrix: {requests: [8, 16]}
gates:
  acceptance_length: {only: [toy]}
  acceptance_rate: {only: [damaged, new]}
  mean_ttft_ms: {only: [words-requests-16]}
  mean_tpot_ms: {only: [new, words-requests-8]}
""",
    )
    suite = load(text)

    def gates(*engines: str) -> list[list[str]]:
        return [[gate.metric.name for gate in case.gates] for case in suitefile.expand(suite, engines=engines)]

    everywhere = "output_throughput"
    assert gates("toy") == [["acceptance_length", everywhere], ["acceptance_length", "mean_ttft_ms", everywhere]]
    assert gates("damaged")[0] == ["acceptance_length", "acceptance_rate", everywhere], "judged as toy"
    assert gates("new") == [
        ["acceptance_rate", "mean_tpot_ms", everywhere], ["acceptance_rate", "mean_ttft_ms", everywhere],
    ]  # fmt: skip


def test_only_of_an_arm_leaves_workloads_out(load: Load) -> None:
    text = with_line(ARM, "  toy: {engine: toy, only: [words-requests-8]}\n  b: {engine: toy}")
    assert ids(load(text + "matrix: {requests: [8, 16]}\n")) == [
        "toy/words-requests-8", "b/words-requests-8", "b/words-requests-16",
    ]  # fmt: skip


counts = st.lists(st.integers(1, 10**7), min_size=1, max_size=4, unique=True)
rates = st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=4, unique=True)


@given(counts, counts, st.one_of(counts.map(lambda v: ("concurrency", v)), rates.map(lambda v: ("request_rate", v))))
def test_ids_are_unique_fit_pytest_and_do_not_move_when_values_are_added(
    inputs: list[int], requests: list[int], axis: tuple[str, list[float]]
) -> None:
    def names(inputs: list[int], values: list[float]) -> list[str]:
        matrix = f"matrix: {{input_tokens: {inputs}, requests: {requests}, {axis[0]}: {values}}}\n"
        draft = Draft(parse(BASE.replace("load: burst\n", "") + matrix, "f"))
        found = resolve_workloads(draft, validate(draft))
        draft.finish()
        return [f"{name}/{load.name}" for name, loads in found.loads.items() for load in loads]

    whole = names(inputs, axis[1])
    assert len(set(whole)) == len(whole) == len(inputs) * len(requests) * len(axis[1])
    assert all(re.fullmatch(r"[A-Za-z0-9._/-]+", name) for name in whole)
    assert set(names(inputs[:1], axis[1][:1])) <= set(whole)
