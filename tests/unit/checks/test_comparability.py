"""Which differences forbid a comparison, which are shown, and which do not matter."""

from __future__ import annotations

import pytest

from pytest_llmperf.checks.comparability import (
    COMPARE,
    REFUSE,
    changed,
    output_differs,
    refusals,
    refused_goodput,
    refused_output,
)

FACTS = {
    "hardware": "8x-nvidia-h200",
    "workload": "sha256:" + "3f9c0d1b77aa" * 4,
    "weights": "real",
    "acceptance": "natural",
    "client": "llmperf",
    "client_placement": "pinned",
}


def test_equal_facts_are_comparable_whatever_else_differs() -> None:
    assert refusals(FACTS, {**FACTS, "engine_version": "9", "kernel": "6"}) == []


@pytest.mark.parametrize("key", REFUSE)
def test_each_fact_of_the_list_refuses(key: str) -> None:
    (reason,) = refusals(FACTS, {**FACTS, key: "other"})
    assert reason.startswith(f"{key}: baseline ")
    assert reason.endswith(", here other")


@pytest.mark.parametrize(
    ("facts", "refused"),
    [
        ({"acceptance": "synthetic"}, True),
        ({"acceptance": "synthetic", "injected": "acceptance=-0.06"}, False),
        ({"acceptance": "synthetic", "injected": "throughput=-10%"}, True),
        ({"acceptance": "none", "injected": "acceptance=-0.06"}, False),
        ({"acceptance": "none"}, False),
        ({"acceptance": "unknown"}, True),
    ],
)
def test_synthetic_counts_stand_for_natural_ones_where_they_are_a_loss_made_on_purpose(
    facts: dict[str, str], refused: bool
) -> None:
    assert bool(refusals(FACTS, {**FACTS, **facts})) == refused


@pytest.mark.parametrize("key", REFUSE)
def test_a_fact_that_only_the_candidate_lacks_is_not_equal(key: str) -> None:
    (reason,) = refusals(FACTS, {k: v for k, v in FACTS.items() if k != key})
    assert reason.endswith(", here unknown")


def test_a_fact_that_the_baseline_does_not_state_does_not_matter_to_it() -> None:
    counts = {"hardware": "any", "weights": "real"}
    assert refusals(counts, {**FACTS, "hardware": "2x-cpu", "client_placement": "shared"}) == []
    assert refusals(counts, {**FACTS, "weights": "dummy"}) == ["weights: baseline real, here dummy"]


def test_digests_are_shown_as_people_compare_them() -> None:
    (reason,) = refusals(FACTS, {**FACTS, "workload": "sha256:" + "0" * 64})
    assert reason == "workload: baseline sha256:3f9c0d1b77aa…, here sha256:000000000000…"


@pytest.mark.parametrize(
    ("here", "reasons"),
    [
        ({"machine.vboost": "4", "machine.gpu_part": "692"}, []),
        ({"machine.vboost": "0", "machine.gpu_part": "692"}, ["vboost: baseline 4, here 0"]),
        ({"machine.gpu_part": "692"}, []),
        ({"machine.vboost": "4", "machine.gpu_part": "699"}, ["gpu part: baseline 692, here 699"]),
        ({"machine.vboost": "4"}, ["gpu part: baseline 692, here unknown"]),
        ({"machine.vboost": "4", "machine.gpu_part": "692", "machine.ecc": "on"}, []),
    ],
)
def test_a_machine_must_be_as_it_was_as_far_as_both_sides_say(here: dict[str, str], reasons: list[str]) -> None:
    before = {"machine.vboost": "4", "machine.gpu_part": "692"}
    assert refusals(FACTS | before, FACTS | here) == reasons
    assert refusals(FACTS, FACTS | here) == []


def test_changes_are_shown_in_the_order_of_the_list_and_the_rest_is_ignored() -> None:
    reference = {"driver": "570", "engine_version": "0.11.0", "node": "a", "kernel": "5", "args": "-tp 8"}
    candidate = {"engine_version": "0.11.1", "driver": "580", "args": "-tp 8", "kernel": "6", "node": "a"}
    assert changed(reference, candidate) == {"engine_version": ("0.11.0", "0.11.1"), "driver": ("570", "580")}
    assert list(changed(reference, candidate)) == ["engine_version", "driver"]


def test_an_added_argument_is_a_change_and_an_unknown_driver_is_none() -> None:
    without, with_ = {"engine": "vllm"}, {"engine": "vllm", "args": "-tp 8", "env": "", "driver": "580"}
    assert changed(without, with_) == {"args": ("none", "-tp 8")}
    assert changed(with_, without) == {"args": ("-tp 8", "none")}


def test_a_side_without_facts_cannot_differ() -> None:
    assert changed({}, FACTS | {"engine": "vllm"}) == {}


def test_no_fact_is_on_both_lists() -> None:
    assert not set(REFUSE) & set(COMPARE)


@pytest.mark.parametrize(
    ("baseline", "here", "refused"),
    [
        ({}, {}, False),
        ({"slo": "none"}, {}, False),
        ({"slo": "ttft 500 ms"}, {"slo": "ttft 500 ms"}, False),
        ({"slo": "ttft 500 ms"}, {"slo": "ttft 300 ms"}, True),
        ({"slo": "ttft 500 ms"}, {}, True),
        ({}, {"slo": "ttft 300 ms"}, True),
    ],
)
def test_goodput_of_other_limits_is_refused(baseline: dict[str, str], here: dict[str, str], refused: bool) -> None:
    found = refused_goodput(baseline, here)
    assert set(found) == ({"request_goodput", "slo_attainment"} if refused else set())
    assert all(why.startswith("slo: baseline ") for why in found.values())


@pytest.mark.parametrize(
    ("reference", "tokens", "differs"),
    [(1000, 1000, False), (1000, 1010, False), (1000, 990, False), (1000, 1011, True), (1000, 989, True),
     (0, 0, False), (0, 1, True), (1000, 0, True)],
)  # fmt: skip
def test_natural_answers_of_other_lengths_are_other_work(reference: int, tokens: int, differs: bool) -> None:
    why = output_differs(reference, tokens)
    assert bool(why) == differs
    assert not differs or f"{tokens} output tokens a run, reference {reference}" in why


def test_natural_output_is_compared_where_the_reference_says_it() -> None:
    said = {"output_tokens": "1000.0"}
    assert refused_output({}, {"output_tokens": "5.0"}) == ""
    assert refused_output(said, {"output_tokens": "1010.0"}) == ""
    assert refused_output(said, {}) == "output_tokens: reference 1000.0, here unknown"
    assert "1011 output tokens a run, reference 1000" in refused_output(said, {"output_tokens": "1011.0"})
    assert changed(FACTS | said, FACTS | {"output_tokens": "1011.0"}) == {}


@pytest.mark.parametrize("written", ["abc", "inf", "-1000", "nan", "1e999"])
def test_an_output_that_is_no_number_is_refused_on_either_side(written: str) -> None:
    right, wrong = {"output_tokens": "1000.0"}, {"output_tokens": written}
    assert refused_output(right, wrong) == f"output_tokens: reference 1000.0, here {written}"
    assert refused_output(wrong, right) == f"output_tokens: reference {written}, here 1000.0"
    assert refused_output(wrong, wrong) == f"output_tokens: reference {written}, here {written}"
