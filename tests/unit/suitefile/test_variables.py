from __future__ import annotations

import pytest

from tests.unit.suitefile.conftest import BASE, Complaints, Load, with_line

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
