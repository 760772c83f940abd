"""What a suite says of judgement beside its gates: auto, relations, failed requests, quarantine, budget."""
# ruff: noqa: E501 (tables, one case a line)

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from pytest_llmperf import suitefile
from pytest_llmperf.errors import SuiteError
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.quarantine import Quarantine
from pytest_llmperf.model.suite import Suite
from tests.unit.suitefile.conftest import BASE, Complaints, Load, with_line

ARM = "  toy: {engine: toy}"
ARMS = """\
  toy: {engine: toy}
  b: {engine: toy}
  c: {engine: toy, default: false, only: [words]}
  bad: {extends: toy, variant_of: toy, default: false}"""
WORDS = "  words: {kind: words, input_tokens: 64, output_tokens: 128, requests: 32}"
WIDE = with_line(ARM, ARMS).replace(WORDS, WORDS + "\n  long: {extends: words, input_tokens: 512}")
"""Gates on line 13, further keys from line 14 on."""
QUARANTINE = "{cases: toy/words, owner: me, why: known, until: 2026-12-24}"


def gates(suite: Suite, arm: str) -> dict[str, list[tuple[str, str | None, float | None]]]:
    """By case id, metric, reference and ``at_least`` of each gate."""
    return {
        case.id: [(gate.metric.name, gate.reference, gate.at_least) for gate in case.gates]
        for case in suitefile.expand(suite, engines=[arm])
    }


@pytest.mark.parametrize("written", ["auto", "{margin: auto}", "{margin: auto, cv: 1%}"])
def test_auto_is_the_metrics_own_margin_until_a_calibration_is_known(written: str, load: Load) -> None:
    [gate] = load(with_line("5%", written)).gates
    assert (gate.auto, gate.margin) == (True, gate.metric.margin)
    assert not load(BASE).gates[0].auto


def test_a_relation_is_a_gate_of_its_own_where_it_says(load: Load) -> None:
    suite = load(
        WIDE + "relations: {b: {metric: output_throughput, vs: toy, at_least: 1.1, margin: 3%, only: [words]}}\n"
    )
    stored, relation = suite.gates
    assert (relation.margin, relation.at_least, relation.line) == (0.03, 1.1, 14)
    assert (stored.reference, relation.reference) == (None, "toy")
    here = ("output_throughput", None, None)
    assert gates(suite, "b") == {"b/words": [here, ("output_throughput", "toy", 1.1)], "b/long": [here]}
    assert gates(suite, "toy") == {"toy/words": [here], "toy/long": [here]}


def test_an_arm_that_is_only_compared_with_needs_no_gate(load: Load) -> None:
    wide = WIDE.replace("5%", "{reference: c, only: [toy, b]}")
    assert gates(load(wide), "c") == {"c/words": []}
    with pytest.raises(SuiteError, match="no gate judges case 'c/words'"):
        load(wide.replace("default: false, only", "only"))


def test_an_arm_may_have_several_relations_and_a_variant_has_them_too(load: Load) -> None:
    suite = load(
        WIDE
        + """\
relations:
  toy:
    - {metric: output_throughput, vs: b}
    - {metric: output_throughput, vs: c, only: [words]}
    - {metric: acceptance_length, vs: b, margin: 0.05}
"""
    )
    assert [gate.line for gate in suite.gates] == [13, 16, 17, 18]
    assert suite.gates[1].margin == suite.gates[1].metric.margin, "the default of the metric table"
    everywhere = [("output_throughput", None, None), ("output_throughput", "b", None)]
    assert gates(suite, "bad") == gates(suite, "toy") == {
        "toy/words": [*everywhere, ("output_throughput", "c", None), ("acceptance_length", "b", None)],
        "toy/long": [*everywhere, ("acceptance_length", "b", None)],
    }  # fmt: skip


def test_a_relation_of_a_variant_is_its_own_and_may_be_with_its_arm(load: Load) -> None:
    suite = load(WIDE + "relations: {bad: {metric: output_throughput, vs: toy}}\n")
    assert len(gates(suite, "toy")["toy/words"]) == 1
    assert gates(suite, "bad")["toy/words"][1] == ("output_throughput", "toy", None)


def test_a_relation_alone_judges_a_case(load: Load) -> None:
    suite = load(WIDE.replace("5%", "{only: [toy, c]}") + "relations: {b: {metric: mean_ttft_ms, vs: toy}}\n")
    assert gates(suite, "b")["b/words"] == [("mean_ttft_ms", "toy", None)]


def test_an_ab_compares_each_metric_once_by_the_margin_of_its_gate(load: Load) -> None:
    suite = load(
        WIDE.replace("5%", "auto")
        + """\
relations:
  b:
    - {metric: output_throughput, vs: c, at_least: 1.1, margin: 1%, only: [words]}
    - {metric: mean_ttft_ms, vs: c, at_least: 2, margin: 7%, only: [words]}
    - {metric: mean_ttft_ms, vs: toy, margin: 8%}
"""
    )
    whole = suitefile.expand(suite, engines=["b"])[0]
    assert len(whole.gates) == 4
    assert [(gate.metric.name, gate.reference) for gate in whole.plain_gates] == [
        ("output_throughput", None), ("mean_ttft_ms", None),
    ]  # fmt: skip
    [case, _] = suitefile.expand_pair(suite, "toy", "b")
    assert case.apart
    assert [(gate.metric.name, gate.reference, gate.at_least, gate.auto) for gate in case.gates] == [
        ("output_throughput", "toy", None, False), ("mean_ttft_ms", "toy", None, False),
    ]  # fmt: skip
    assert [gate.margin for gate in case.gates] == [suite.gates[0].metric.margin, 0.07]


def test_how_many_requests_may_fail(load: Load) -> None:
    assert load(BASE).failures is None, "a single failed request fails the case"
    assert load(BASE + "failed_requests: {allowed: 0.5%, limit: 0.02}\n").failures == FailureGate(
        allowed=0.005, limit=0.02
    )
    assert load(BASE + "failed_requests: {allowed: 0}\n").failures == FailureGate(allowed=0.0)
    assert load(BASE + "failed_requests: {}\n").failures == FailureGate()


@pytest.mark.parametrize("day", ["2026-12-24", "'2026-12-24'"])
def test_a_quarantine_names_cases_a_reason_an_owner_and_a_day(day: str, load: Load) -> None:
    text = f"quarantine:\n  - {QUARANTINE}\n  - {{cases: 'c/*', metrics: [output_throughput], owner: me, why: x, until: {day}}}\n"
    first, second = load(WIDE + text).quarantine
    assert first == Quarantine(cases="toy/words", owner="me", why="known", until=date(2026, 12, 24), line=15)
    assert second == replace(first, cases="c/*", metrics=("output_throughput",), why="x", line=16), (
        "also of arms that run only when named"
    )
    assert load(BASE).quarantine == ()


def test_a_past_day_and_an_empty_list_are_no_mistakes(load: Load) -> None:
    past = QUARANTINE.replace("2026", "1999")
    assert load(BASE + f"quarantine: [{past}]\n").quarantine[0].until == date(1999, 12, 24)
    assert load(BASE + f"quarantine: [{past}]\n", overrides={"quarantine": "[]"}).quarantine == ()


def test_a_budget_is_a_duration(load: Load) -> None:
    assert load(BASE).budget_s is None
    assert load(BASE + "budget: 5h\n").budget_s == 18000.0


def test_all_of_it_may_be_set_for_a_session(load: Load) -> None:
    text = WIDE + "relations: {b: {metric: output_throughput, vs: toy}}\n"
    given = {
        "relations.b.at_least": "1.3",
        "relations.toy.metric": "mean_ttft_ms",
        "relations.toy.vs": "b",
        "relations.c": "[{metric: mean_ttft_ms, vs: b, only: [words]}]",
        "failed_requests.limit": "5%",
        "budget": "10m",
        "gates.output_throughput": "auto",
    }
    suite = load(text, overrides=given)
    assert suite.overrides == given
    assert [(gate.only_arms, gate.reference, gate.at_least) for gate in suite.gates[1:]] == [
        (("b",), "toy", 1.3), (("toy",), "b", None), (("c",), "b", None),
    ]  # fmt: skip
    assert (suite.failures, suite.budget_s, suite.gates[0].auto) == (FailureGate(limit=0.05), 600.0, True)


def test_a_part_of_a_list_is_no_key(load: Load) -> None:
    text = WIDE + "relations: {b: [{metric: output_throughput, vs: toy}]}\n"
    assert load(text, overrides={"relations.b.at_least": "1.3"}).overrides == {}


def test_a_mistake_in_an_override_names_the_option(load: Load) -> None:
    with pytest.raises(SuiteError) as caught:
        load(WIDE, overrides={"relations.b": "{metric: output_throughput, vs: tox}"})
    [mistake] = caught.value.mistakes
    assert str(mistake).endswith(
        "--llmperf-set relations.b={metric: output_throughput, vs: tox}: relations.b.vs: unknown arm 'tox'; did you mean 'toy'?"
    )


def relation(text: str, arm: str = "b") -> str:
    return WIDE + f"relations: {{{arm}: {text}}}\n"


RELATIONS = {
    "arm": (relation("{metric: output_throughput, vs: toy}", "d"), "14: relations.d: unknown arm 'd'; known: b, bad, c, toy"),
    "metric": (relation("{metric: output_thruput, vs: toy}"), "14: relations.b.metric: unknown metric; did you mean 'output_throughput'?"),
    "goodput": (relation("{metric: slo_attainment, vs: toy}"), "14: relations.b.metric: needs limits at the top of the suite, "),
    "vs": (relation("{metric: output_throughput, vs: tox}"), "14: relations.b.vs: unknown arm 'tox'; did you mean 'toy'?"),
    "vs-variant": (relation("{metric: output_throughput, vs: bad}"), "14: relations.b.vs: 'bad' is a variant; compare with an arm that is none, such as 'toy'"),
    "vs-itself": (relation("{metric: output_throughput, vs: b}"), "14: relations.b.vs: 'b' compared with itself promises nothing; name another arm"),
    "no-metric": (relation("{vs: toy}"), "14: relations.b: needs 'metric', such as metric: output_throughput"),
    "no-vs": (relation("{metric: output_throughput}"), "14: relations.b: needs 'vs', the arm to compare with"),
    "typo": (relation("{metrik: output_throughput, vs: toy}"), "14: relations.b.metrik: unknown field; did you mean 'metric'?"),
    "typo-in-list": (relation("[{metric: output_throughput, vs: toy, atleast: 2}]"), "14: relations.b[0].atleast: unknown field; did you mean 'at_least'?"),
    "percentage": (relation("{metric: output_throughput, vs: toy, at_least: 110%}"), "14: relations.b.at_least: '110%' must say how many times as good, from 0.01 to 100: 1.1 is a tenth better"),
    "not-positive": (relation("{metric: output_throughput, vs: toy, at_least: 0}"), "14: relations.b.at_least: 0 must say how many times as good, "),
    "too-good": (relation("{metric: output_throughput, vs: toy, at_least: 110}"), "14: relations.b.at_least: 110 must say how many times as good, "),
    "absolute": (relation("{metric: acceptance_length, vs: toy, at_least: 1.1}"), "14: relations.b.at_least: acceptance_length is judged by its absolute difference, not by how many times as good it is; leave at_least out"),
    "auto": (relation("{metric: output_throughput, vs: toy, margin: auto}"), "14: relations.b.margin: auto goes by the calibration in the stored baseline, and a relation has none; write a margin, such as 5%"),
    "margin": (relation("{metric: output_throughput, vs: toy, margin: 5}"), "14: relations.b.margin: 5 must be at most 90% or 0.9: hardly any loss is larger, so the gate could not fail; did you mean 5%?"),
    "margin-of-all": (relation("{metric: output_throughput, vs: toy, margin: 99.999999%}"), "14: relations.b.margin: 99.999999% must be at most 90% or 0.9: hardly any loss is larger"),
    "only": (relation("{metric: output_throughput, vs: toy, only: [lang]}"), "14: relations.b.only[0]: unknown workload 'lang'; did you mean 'long'?"),
    "only-elsewhere": (relation("{metric: output_throughput, vs: toy, only: [long]}", "c"), "14: relations.c.only: 'c' runs under none of these; "),
    "vs-elsewhere": (relation("{metric: output_throughput, vs: c}"), "14: relations.b.vs: 'c' does not run under 'long'; name by only the workloads that both arms run under"),
    "word": (relation("toy"), "14: relations.b: 'toy' must be a relation, such as {metric: output_throughput, vs: ARM}, or a list of them"),
    "words": (relation("[toy]"), "14: relations.b[0]: 'toy' must be a mapping, such as {key: value}"),
    "none": (relation("[]"), "14: relations.b: [] must hold at least 1"),
    "list": (WIDE + "relations: [b]\n", "14: relations: [...] must be a mapping, such as {key: value}"),
    "twice": (relation("[{metric: output_throughput, vs: toy, at_least: 2},\n  {metric: output_throughput, vs: toy, only: [words]}]"), "15: relations.b[1]: output_throughput is compared with 'toy' on line 14 already; keep one of the two"),
    "like-a-gate": (relation("{metric: output_throughput, vs: toy}").replace("5%", "{margin: 5%, reference: toy}"), "14: relations.b: output_throughput is compared with 'toy' on line 13 already; keep one of the two"),
    "of-a-variant-too": (WIDE + "relations: {toy: {metric: output_throughput, vs: b},\n  bad: {metric: output_throughput, vs: b}}\n", "15: relations.bad: output_throughput is compared with 'b' on line 14 already; keep one of the two"),
}  # fmt: skip

FAILURES = {
    "order": (BASE + "failed_requests: {allowed: 2%}\n", "10: failed_requests: allowed 0.02 and limit 0.01: need 0 <= allowed < limit <= 1"),
    "share": (BASE + "failed_requests: {limit: 5}\n", "10: failed_requests.limit: 5 must be a share of at most 1 or a percentage of at most 100%; did you mean 5%?"),
    "most": (BASE + "failed_requests: {allowed: 99%, limit: 100%}\n", "10: failed_requests.limit: 100% must be at most 50%: an engine that loses more than every other request is not in order; the default is 1%"),
    "percentage": (BASE + "failed_requests: {limit: 101%}\n", "10: failed_requests.limit: '101%' must be a share of at most 1 or a percentage of at most 100%"),
    "negative": (BASE + "failed_requests: {allowed: -1}\n", "10: failed_requests.allowed: -1 must be finite and not negative"),
    "wrong-and-out-of-order": (BASE + "failed_requests: {allowed: 2%, limit: many}\n", "10: failed_requests.limit: 'many' must be a number or a percentage, such as 0.03 or 3%"),
    "key": (BASE + "failed_requests: {alowed: 1%}\n", "10: failed_requests.alowed: unknown field; did you mean 'allowed'?"),
    "word": (BASE + "failed_requests: 1%\n", "10: failed_requests: '1%' must be a mapping, such as {key: value}"),
}  # fmt: skip


def quarantine(old: str, new: str) -> str:
    return WIDE + f"quarantine:\n  - {QUARANTINE.replace(old, new)}\n"


QUARANTINES = {
    "cases": (quarantine("toy/words", "toy/wrds"), "15: quarantine[0].cases: no case of this suite is 'toy/wrds'; did you mean 'toy/words'?"),
    "pattern": (quarantine("toy/words", "toi/*"), "15: quarantine[0].cases: no case of this suite is 'toi/*'; did you mean 'toy/*'?"),
    "unlike": (quarantine("toy/words", "vllm-nightly/sharegpt"), "15: quarantine[0].cases: no case of this suite is 'vllm-nightly/sharegpt'; its ids are such as 'toy/words'"),
    "everything": (quarantine("toy/words", "'*'"), "15: quarantine[0].cases: '*' names no arm and no workload, and would excuse the whole suite; write such as 'ARM/*'"),
    "everything-else": (quarantine("toy/words", "'??*/*'"), "15: quarantine[0].cases: '??*/*' names no arm and no workload"),
    "brackets": (quarantine("toy/words", "'[!x]*'"), "15: quarantine[0].cases: '[!x]*' holds a '['; only * and ? stand for other text"),
    "blank-owner": (quarantine("owner: me", "owner: ' '"), "15: quarantine[0].owner: ' ' shows nothing; write a name or a team"),
    "invisible-why": (quarantine("why: known", 'why: "\\u200b"'), "15: quarantine[0].why: '\\u200b' shows nothing; write what is known of it"),
    "variant": (quarantine("toy/words", "bad/words"), "15: quarantine[0].cases: no case of this suite is 'bad/words'; did you mean "),
    "metric": (quarantine("owner", "metrics: [mean_tpot], owner"), "15: quarantine[0].metrics[0]: unknown metric 'mean_tpot'; did you mean 'mean_tpot_ms'?"),
    "ungated": (quarantine("owner", "metrics: [output_throughput, mean_tpot_ms], owner"), "15: quarantine[0].metrics[1]: no gate judges 'mean_tpot_ms'; known: output_throughput"),
    "no-metric": (quarantine("owner", "metrics: [], owner"), "15: quarantine[0].metrics: [] must hold at least 1"),
    "no-cases": (quarantine("cases: toy/words, ", ""), "15: quarantine[0]: needs 'cases', such as cases: 'ARM/*'"),
    "no-owner": (quarantine("owner: me, ", ""), "15: quarantine[0]: needs 'owner', such as owner: a name or a team"),
    "no-why": (quarantine("why: known, ", ""), "15: quarantine[0]: needs 'why', such as why: what is known of it"),
    "no-until": (quarantine(", until: 2026-12-24", ""), "15: quarantine[0]: needs 'until', such as until: 2026-12-24"),
    "typo": (quarantine("until", "untl"), "15: quarantine[0].untl: unknown field; did you mean 'until'?"),
    "day": (quarantine("2026-12-24", "2026-02-30"), "15: quarantine[0].until: '2026-02-30' must be a day, such as 2026-12-24"),
    "week": (quarantine("2026-12-24", "2026-W52-4"), "15: quarantine[0].until: '2026-W52-4' must be a day, such as 2026-12-24"),
    "number": (quarantine("2026-12-24", "20261224"), "15: quarantine[0].until: 20261224 must be a day, such as 2026-12-24"),
    "null": (quarantine("owner: me", "owner: "), "15: quarantine[0].owner: has no value; write one, or remove the key"),
    "mapping": (WIDE + f"quarantine: {QUARANTINE}\n", "14: quarantine: {...} must be a list, such as [a, b]"),
    "word": (WIDE + "quarantine: [toy/words]\n", "14: quarantine[0]: 'toy/words' must be a mapping, such as {key: value}"),
    "cases-in-doubt": (quarantine("toy/words", "toy/x").replace("engine: toy}\n  b", "engine: tay}\n  b"), "4: engines.toy.engine: unknown engine 'tay'; did you mean 'toy'?"),
    "gates-in-doubt": (quarantine("owner", "metrics: [mean_tpot_ms], owner").replace(": 5%", ": 5%\n  mean_tpt_ms: 5%"), "14: gates.mean_tpt_ms: unknown metric; did you mean 'mean_tpot_ms'?"),
    "budget": (BASE + "budget: 300\n", "10: budget: 300 must be a duration with a unit, such as 500ms, 5s, 40m or 2h"),
}  # fmt: skip

ALL = {
    f"{group}-{name}": case
    for group, cases in {"relations": RELATIONS, "failures": FAILURES, "quarantine": QUARANTINES}.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("text", "expected"), ALL.values(), ids=ALL.keys())
def test_one_mistake_is_one_message(text: str, expected: str, complaints: Complaints) -> None:
    found = complaints(text)
    assert len(found) == 1, found
    assert found[0].startswith(expected)


def test_mistakes_of_all_kinds_come_at_once(complaints: Complaints) -> None:
    text = (
        WIDE
        + """\
relations:
  b: {metric: output_thruput, vs: tox, at_least: -1, only: [lang]}
  toy:
    - {metric: acceptance_length, vs: b, at_least: 2, margin: 3%}
    - {metric: mean_ttft_ms, vs: toy}
failed_requests: {allowed: x, limit: 5}
quarantine:
  - {cases: x/y, metrics: [mean], owner: "", until: tomorrow}
  - {case: toy/words, why: known}
budget: 5 days
"""
    )
    assert [line.rpartition(": ")[0].partition(": ")[2].partition(": ")[0] for line in complaints(text)] == [
        "relations.b.at_least", "relations.b.metric", "relations.b.only[0]", "relations.b.vs",
        "relations.toy[0].at_least", "relations.toy[0].margin", "relations.toy[1].vs",
        "failed_requests.allowed", "failed_requests.limit",
        "quarantine[0]", "quarantine[0].cases", "quarantine[0].metrics[0]", "quarantine[0].owner", "quarantine[0].until",
        "quarantine[1]", "quarantine[1]", "quarantine[1].case",
        "budget",
    ]  # fmt: skip


def test_a_case_never_has_a_metric_twice_against_one_reference(load: Load) -> None:
    def pairs(case: Case) -> list[tuple[str, str | None]]:
        return [(gate.metric.name, gate.reference) for gate in case.gates]

    suite = load(
        relation(
            "[{metric: output_throughput, vs: toy, only: [words]}, {metric: output_throughput, vs: toy, only: [long]}]"
        )
    )
    for case in suitefile.expand(suite):
        assert len(set(pairs(case))) == len(case.gates)


@pytest.mark.parametrize(
    "gate",
    [
        "output_throughput: 90%",
        "mean_e2el_ms: {margin: 0.9, cv: 50%}",
        "acceptance_rate: 0.9",
        "acceptance_length: {margin: 5, cv: 0.5}",
    ],
)
def test_the_largest_that_can_still_fail_is_accepted(gate: str, load: Load) -> None:
    assert len(load(with_line("output_throughput: 5%", gate) + "failed_requests: {limit: 50%}\n").gates) == 1
