from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import pytest_llmperf.suitefile.document as module
from pytest_llmperf.errors import Mistake, SuiteError
from pytest_llmperf.suitefile.document import Document, dotted, parse, parse_value


def fatal(text: str) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        parse(text, "f")
    return [str(mistake) for mistake in caught.value.mistakes]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("no", "no"),
        ("true", True),
        ("False", False),
        ("2026-11-30", "2026-11-30"),
        ("1:30", "1:30"),
        ("010", 10),
        ("-3", -3),
        ("1_000", "1_000"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        (".nan", ".nan"),
        ("40%", "40%"),
        ("~", None),
        ("", None),
        ("0x1F", "0x1F"),
        ("'8'", "8"),
        ("12345678901234567890", 12345678901234567890.0),
        ("[1, {a: b}]", [1, {"a": "b"}]),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: Any) -> None:
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


def test_a_path_has_the_line_of_its_key() -> None:
    document = parse("a: 1\nb:\n  c:\n    - 1\n    -\n      d: 2\n", "f")
    assert document.line(("a",)) == 1
    assert document.line(("b", "c")) == 3
    assert document.line(("b", "c", 1, "d")) == 6
    assert document.line(("b", "c", 7)) == 3, "the closest entry above"
    assert document.line(("x",)) == 1


def test_a_key_written_twice_keeps_its_first_value_and_names_both_lines() -> None:
    document = parse("a: 1\nb:\n  c: 1\n  c: 2\n", "f")
    assert document.data == {"a": 1, "b": {"c": 1}}
    assert [str(mistake) for mistake in document.mistakes] == ["f:4: b.c: written twice, first on line 3; remove one"]


@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
def test_broken_yaml_is_one_mistake_with_its_line(loader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Loader(getattr(yaml, loader)):  # type: ignore[misc]
        yaml_implicit_resolvers = module._Loader.yaml_implicit_resolvers

    monkeypatch.setattr(module, "_Loader", Loader)
    [mistake] = fatal("a: 1\nb: [1, 2\nc: 3\n")
    assert mistake.startswith(("f:3: not valid YAML: ", "f:2: not valid YAML: "))
    [mistake] = fatal("a: 1\nb: c: d\n")
    assert mistake.startswith("f:2: not valid YAML: mapping values are not allowed")
    [mistake] = fatal("a: 1\nb: \x01\n")
    assert mistake.startswith("f:2: not valid YAML: ")
    assert parse("a: 1\nb: [on, 1e3]\n", "f").data == {"a": 1, "b": ["on", 1000.0]}


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "f:1: is empty; a suite starts with a line such as 'suite: my-suite'"),
        ("# only a comment\n", "f:1: is empty; a suite starts with a line such as 'suite: my-suite'"),
        ("\n- a\n", "f:2: holds no mapping; a suite starts with a line such as 'suite: my-suite'"),
        (
            "a: 1\n---\nb: 2\n",
            "f:2: not valid YAML: but found another document, expected a single document in the stream",
        ),
    ],
)
def test_a_file_that_is_no_mapping(text: str, mistake: str) -> None:
    assert fatal(text) == [mistake]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("a: !!python/name:os.system x", "f:1: a: tag 'tag:yaml.org,2002:python/name:os.system': "),
        ("a: !!int many", "f:1: a: 'many' is no int; remove the tag"),
        ("? [1, 2]\n: 3", "f:1: a key must be one word, not a list or a mapping"),
    ],
)
def test_what_a_suite_file_has_no_use_for(text: str, mistake: str) -> None:
    [found] = parse(text, "f").mistakes
    assert str(found).startswith(mistake)


def test_aliases_are_copies_and_merge_keys_are_plain_keys() -> None:
    document = parse("a: &x [1]\nb: *x\nc: {<<: {d: 1}}\n", "f")
    assert document.data == {"a": [1], "b": [1], "c": {"<<": {"d": 1}}}
    assert document.data["a"] is not document.data["b"]


@pytest.mark.parametrize(
    "text",
    ["a: &x [*x]", "a: " + "[" * 30 + "]" * 30, "a: " + "[" * 3000, "b0: &b0 [1,1,1,1,1,1,1,1,1,1]\n" + "\n".join(
        f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 10)}]" for n in range(1, 12))],
    ids=["contains-itself", "deep", "very-deep", "bomb"],
)  # fmt: skip
def test_depth_and_size_are_bounded(text: str) -> None:
    assert any("levels deep" in m or "more than 100000 values" in m or "not valid YAML" in m for m in fatal(text))


@given(st.text(alphabet=st.sampled_from("ab:{}[],&*!|>-?#%'\"\n \t0.1\x00é"), max_size=40))
def test_any_text_parses_or_is_a_mistake(text: str) -> None:
    mistakes: list[Mistake] = []
    document: Document | None = None
    try:
        document = parse(text, "f")
    except SuiteError as error:
        mistakes = error.mistakes
    assert mistakes if document is None else isinstance(document.data, dict)


def test_paths_as_people_read_them() -> None:
    assert dotted(("engines", "vllm", "args", 1)) == "engines.vllm.args[1]"
    assert dotted(()) == ""
