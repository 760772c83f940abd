from __future__ import annotations

import pytest

from pytest_llmperf import registry, suitefile
from pytest_llmperf.errors import SuiteError
from pytest_llmperf.model.suite import Suite
from tests.unit.suitefile.conftest import BASE, Complaints, Load, forget, with_line

ARM = "  toy: {engine: toy}"
MODEL = "{id: tiny}"


def test_the_model_path_and_fields_of_adapters_take_variables(load: Load) -> None:
    text = with_line(MODEL, '{id: tiny, path: "${ROOT}/${DIR}/x"}').replace(
        ARM, '  toy: {engine: toy, model: {path: "${ROOT}"}}\n  there: {engine: remote, url: "http://${HOST}:1"}'
    )
    suite = load(text, environ={"ROOT": "/m", "DIR": "d", "HOST": "h"})
    assert suite.arms["toy"].model.path == "/m"
    assert suite.arms["there"].model.path == "/m/d/x"
    assert suite.arms["there"].options == {"url": "http://h:1"}


def test_the_path_of_a_data_file_takes_variables(load: Load, complaints: Complaints) -> None:
    text = with_line("{kind: words, input_tokens: 64, output_tokens: 128, requests: 32}",
                     '{kind: custom, path: "${DATA}/x", output_tokens: 128, requests: 32}')  # fmt: skip
    data = load(text, environ={"DATA": "/d"}).workloads["words"].data
    assert data is not None
    assert data.path == "/d/x"
    assert complaints(text) == ["6: workloads.words.path: ${DATA} is not set"]


def test_an_inherited_engine_decides_which_fields_take_variables(load: Load) -> None:
    text = with_line(ARM, '  a: {engine: remote, url: "http://a"}\n  b: {extends: a, url: "${URL}"}')
    assert load(text, environ={"URL": "u"}).arms["b"].options == {"url": "u"}


@pytest.mark.parametrize(
    ("url", "mistake"),
    [
        ("${URL}", "4: engines.toy.url: ${URL} is not set"),
        ("${EMPTY}", "4: engines.toy.url: ${EMPTY} is empty"),
        ("${1X}", "4: engines.toy.url: '${1X}': write a variable as ${NAME}, with letters, digits and _"),
        ("${SET", "4: engines.toy.url: '${SET': write a variable as ${NAME}, with letters, digits and _"),
    ],
)
def test_a_variable_that_cannot_be_resolved(url: str, mistake: str, complaints: Complaints) -> None:
    text = with_line(ARM, f'  toy: {{engine: remote, url: "{url}"}}')
    assert complaints(text, environ={"SET": "x", "EMPTY": ""}) == [mistake]


def test_every_unset_variable_of_a_value_is_named(complaints: Complaints) -> None:
    assert complaints(with_line(MODEL, '{id: tiny, path: "${A}/${B}/${A}"}')) == [
        "2: model.path: ${A} is not set", "2: model.path: ${B} is not set",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (with_line(ARM, '  toy: {engine: toy, args: ["${X}", "${Y}"]}'), "4: engines.toy.args[0]"),
        (with_line(ARM, '  toy: {engine: toy, env: {A: "${X}"}}'), "4: engines.toy.env.A"),
        (with_line("suite: chat", "suite: chat\nwhy: costs ${5"), "2: why"),
        (with_line(MODEL, '{id: "${X}"}'), "2: model.id"),
    ],
)  # fmt: skip
def test_a_variable_in_any_other_place_is_a_mistake(text: str, path: str, complaints: Complaints) -> None:
    found = complaints(text, environ={"X": "1"})
    assert found[0].startswith(f"{path}: ")
    assert found[0].endswith(": ${VAR} is not allowed here, only in model.path, workloads.NAME.path and trace.path")


def test_the_places_that_take_one_depend_on_the_engines(complaints: Complaints) -> None:
    text = with_line(ARM, '  toy: {engine: remote, url: "http://x", api_key_env: "${KEY}"}')
    [found] = complaints(text, environ={"KEY": "1"})
    assert found.endswith("only in model.path, workloads.NAME.path, trace.path and engines.ARM.url")


def test_a_key_takes_none(complaints: Complaints) -> None:
    text = with_line(ARM, '  toy: {engine: toy, env: {"${X}": "1"}}')
    assert complaints(text, environ={"X": "A"}) == ["4: engines.toy.env.${X}: a key may not hold ${VAR}"]


def test_text_that_looks_a_little_like_one_is_text(load: Load) -> None:
    assert load(BASE.replace(MODEL, "{id: tiny, path: $HOME/x}")).arms["toy"].model.path == "$HOME/x"


OPTIONAL = """\
  toy: {engine: toy}
  there: {engine: remote, url: "${URL}", default: false}
  again: {extends: there, default: false, api_key_env: KEY}
  here: {extends: there, default: false, url: "http://localhost"}"""


def unset(suite: Suite, *engines: str) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        suitefile.expand(suite, engines=engines)
    return [str(mistake).partition("chat.llmperf.yaml:")[2] for mistake in caught.value.mistakes]


def test_what_an_arm_needs_that_does_not_run_stops_no_other_arm(load: Load) -> None:
    suite = load(with_line(ARM, OPTIONAL))
    assert [case.id for case in suitefile.expand(suite)] == ["toy/words"]
    assert [case.id for case in suitefile.expand(suite, engines=["here", "toy"])] == ["toy/words", "here/words"]
    assert unset(suite, "toy", "there") == ["5: engines.there.url: ${URL} is not set"]
    assert unset(suite, "again", "there") == ["5: engines.there.url: ${URL} is not set"], "inherited, and said once"
    whole = load(with_line(ARM, OPTIONAL), environ={"URL": "u"})
    assert [case.arm.options for case in suitefile.expand(whole, engines=["there"])] == [{"url": "u"}]


def test_a_default_arm_stops_the_others_unless_they_are_named(load: Load) -> None:
    suite = load(with_line(ARM, OPTIONAL.replace(", default: false}\n  again", "}\n  again")))
    assert unset(suite) == ["5: engines.there.url: ${URL} is not set"]
    assert suitefile.expand(suite, engines=["toy"])


def test_an_arm_that_others_are_compared_with_is_needed(load: Load) -> None:
    text = with_line(ARM, OPTIONAL)
    assert unset(load(text.replace("5%", "{reference: there}"))) == ["5: engines.there.url: ${URL} is not set"]
    suite = load(text + "relations: {here: {metric: output_throughput, vs: there}}\n")
    assert suitefile.expand(suite)
    assert unset(suite, "here") == ["5: engines.there.url: ${URL} is not set"]
    assert suitefile.expand_pair(suite, "toy", "here"), "an A/B compares with no other arm"
    with pytest.raises(SuiteError, match="is not set"):
        suitefile.expand_pair(suite, "there", "here")


def test_the_model_is_needed_by_the_arms_that_bring_no_path(load: Load) -> None:
    text = with_line(MODEL, '{id: tiny, path: "${MODELS}/tiny"}').replace("kind: words, ", "")
    text = text.replace(ARM, ARM + "\n  own: {engine: toy, default: false, model: {path: /m}}")
    suite = load(text)
    assert suitefile.expand(suite, engines=["own"])
    assert unset(suite) == ["2: model.path: ${MODELS} is not set"], "and not that the model has no files"


def test_the_variables_of_arms_that_run_come_with_all_other_mistakes(complaints: Complaints) -> None:
    text = with_line(ARM, OPTIONAL.replace("engine: toy", 'engine: remote, url: "${HOST}", thread: 1'))
    assert [line.partition(": ")[2].partition(": ")[0] for line in complaints(text)] == [
        "engines.toy.thread", "engines.toy.url",
    ]  # fmt: skip


def test_an_override_may_be_what_is_unset(load: Load) -> None:
    suite = load(with_line(ARM, OPTIONAL), overrides={"engines.there.url": "${HOST}"})
    with pytest.raises(SuiteError, match=r"--llmperf-set engines.there.url=\${HOST}: .* is not set"):
        suitefile.expand(suite, engines=["there"])
    assert suitefile.expand(load(with_line(ARM, OPTIONAL), overrides={"engines.there.url": "u"}), engines=["again"])


def test_a_newer_value_that_is_unset_does_not_give_way_to_an_older_one(load: Load) -> None:
    text = with_line(ARM, OPTIONAL + '\n  last: {extends: here, default: false, url: "${LAST}"}')
    assert unset(load(text), "last") == ["8: engines.last.url: ${LAST} is not set"]


def test_a_rule_on_several_options_waits_for_the_one_that_is_unset(
    load: Load, complaints: Complaints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.BUILTIN["engine"], "boxed", "tests.unit.suitefile.toy_engines:Boxed")
    forget()
    text = with_line(ARM, ARM + '\n  boxed: {engine: boxed, default: false, image: "${IMAGE}"}')
    suite = load(text)
    assert suitefile.expand(suite)
    assert unset(suite, "boxed") == ["5: engines.boxed.image: ${IMAGE} is not set"]
    assert complaints(text.replace(', image: "${IMAGE}"', "")) == ["5: engines.boxed: needs either image or binary"]
