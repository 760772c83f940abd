"""``preconditions`` and ``expect``: what is expected of a machine and of a running engine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from pytest_llmperf.checks import answers
from pytest_llmperf.checks.conditions import CONDITIONS
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.finding import Policy
from tests.unit.suitefile.conftest import BASE, Complaints, Load, with_line


def with_preconditions(*lines: str) -> str:
    return BASE + "preconditions:\n" + "".join(f"  {line}\n" for line in lines)


FORMS = [
    ("persistence_mode: {require: on}", Expectation(policy="require", value="on")),
    ("ecc: compare", Expectation(policy="compare")),
    ("vboost: {require: 4}", Expectation(policy="require", value="4")),
    ("vboost: {warn: 4, reason: not on all nodes}", Expectation(policy="warn", value="4", reason="not on all nodes")),
    ("foreign_processes: {require: none, allow: [dcgm-exporter]}",
     Expectation(policy="require", value="none", allow=("dcgm-exporter",))),
    ("foreign_processes: {allow: [dcgm-exporter]}", Expectation(allow=("dcgm-exporter",))),
    ("power_limit: {require: 500 W}", Expectation(policy="require", value="500 W")),
    ("xid: {policy: ignore, reason: known}", Expectation(policy="ignore", reason="known")),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), FORMS, ids=[line for line, _ in FORMS])
def test_what_a_line_says(line: str, expected: Expectation, load: Load) -> None:
    name = line.partition(":")[0]
    suite = load(with_preconditions(line))
    assert suite.preconditions == {name: expected}
    assert not suite.strict


@pytest.mark.parametrize("policy", get_args(Policy))
def test_every_policy_has_a_word(policy: Policy, load: Load) -> None:
    assert load(with_preconditions(f"ecc: {policy}")).preconditions == {"ecc": Expectation(policy=policy)}


@pytest.mark.parametrize("name", CONDITIONS)
def test_every_check_can_be_required(name: str, load: Load) -> None:
    assert load(with_preconditions(f"{name}: require")).preconditions == {name: Expectation(policy="require")}


def test_variables_of_the_engine_and_strictness(load: Load) -> None:
    suite = load(with_preconditions("strict: true", "env:", "  TRTLLM_ENABLE_PDL: {require: '1'}", "  X: compare"))
    assert suite.strict
    assert suite.preconditions == {
        "env.TRTLLM_ENABLE_PDL": Expectation(policy="require", value="1"),
        "env.X": Expectation(policy="compare"),
    }


def test_without_the_key_nothing_is_expected(load: Load) -> None:
    assert (load(BASE).preconditions, load(BASE).strict) == ({}, False)


MISTAKES = [
    ("vbost: {require: 4}",
     "vbost: no check is called 'vbost'; did you mean 'vboost'?"),
    ("vboost: {require: on}",
     "vboost.require: 'on' must be a whole number"),
    ("vboost: {require: true}",
     "vboost.require: 'true' must be a whole number"),
    ("ecc: {require: true}",
     "ecc.require: 'true' must be on or off"),
    ("power_limit: {require: 500}",
     "power_limit.require: '500' must be text, as the check shows it; put it in quotes"),
    ("xid: {require: none}",
     "xid.require: xid takes no value: its rule is its own; write xid: require"),
    ("ecc: sometimes",
     "ecc: 'sometimes' must be require, warn, compare, record, ignore, or {require: VALUE}"),
    ("ecc: 3",
     "ecc: 3 must be require, warn, compare, record, ignore, or {require: VALUE}"),
    ("ecc: {require: [on]}",
     "ecc.require: [...] must be one value: text, a number, true or false"),
    ("ecc: {requires: on}",
     "ecc.requires: unknown field; did you mean 'require'?"),
    ("ecc: {}",
     "ecc: needs what must be, such as {require: VALUE}, or a policy, such as compare"),
    ("ecc: {require: on, warn: off}",
     "ecc: require and warn exclude each other; write one"),
    ("ecc: {require: on, allow: [x]}",
     "ecc.allow: means nothing to ecc; it is a part of foreign_processes"),
    ("strict: 1",
     "strict: 1 must be true or false"),
    ("env: {X: {require: 1}}",
     "env.X.require: '1' must be text, as the check shows it; put it in quotes"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "mistake"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_is_named_with_its_line(line: str, mistake: str, complaints: Complaints) -> None:
    last = BASE.count("\n") + 2
    assert complaints(with_preconditions(line)) == [f"{last}: preconditions.{mistake}"]


def test_one_value_can_be_changed_for_a_session(load: Load) -> None:
    given = {"preconditions.vboost.require": "2", "preconditions.strict": "true"}
    suite = load(BASE, overrides=given)
    assert suite.preconditions == {"vboost": Expectation(policy="require", value="2")}
    assert suite.strict


TOY = "  toy: {engine: toy}\n"


def test_what_must_be_in_effect_is_inherited_by_name(load: Load) -> None:
    first = "  toy: {engine: toy, expect: {dp_size: 8, ratio: 0.5}}\n"
    suite = load(with_line(TOY, first + "  more: {extends: toy, expect: {on: true, dp_size: 4}}\n"))
    assert suite.arms["toy"].expect == {"dp_size": "8", "ratio": "0.5"}
    assert suite.arms["more"].expect == {"dp_size": "4", "ratio": "0.5", "on": "true"}


def test_a_list_cannot_be_in_effect(complaints: Complaints) -> None:
    assert complaints(with_line(TOY, "  toy: {engine: toy, expect: {dp_size: [8]}}\n")) == [
        "4: engines.toy.expect.dp_size: [...] must be one value: text, a number, true or false"
    ]


DOCS = (Path(__file__).parents[3] / "docs" / "suites.md").read_text(encoding="utf-8")


def test_the_values_of_checks_are_documented() -> None:
    table = DOCS.partition("| check | takes |")[2].partition("\n\n")[0]
    takes: dict[str, str] = {}
    for names, said in re.findall(r"^\| (`.+?) \| (.+) \|$", table, re.MULTILINE):
        takes |= dict.fromkeys(re.findall(r"`(\w+)`", names), said)
    assert takes.pop("env")
    assert {name for name, said in takes.items() if said.startswith("text")} == answers.TEXTS
    assert {name for name, said in takes.items() if said == "number"} == answers.NUMBERS
    words = {name: tuple(re.findall(r"`([^`]+)`", takes[name])) for name in answers.WORDS}
    assert words == answers.WORDS
