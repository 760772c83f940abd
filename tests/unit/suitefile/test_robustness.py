"""Whatever is written, the answer is a suite or a list of mistakes, never a traceback."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_llmperf import suitefile
from pytest_llmperf.errors import Mistake, SuiteError
from pytest_llmperf.model.suite import Suite

SUITE: dict[str, Any] = {
    "suite": "full",
    "model": {"id": "tiny", "path": "${MODELS}/x"},
    "hardware": {"gpu": "H200", "count": 8},
    "stall_timeout": "5s",
    "engines": {
        "a": {"engine": "toy", "threads": 2, "args": ["-x", "1"], "env": {"A": "1"}, "only": ["w"]},
        "b": {"extends": "a", "variant_of": "a", "default": False, "args+": ["-y"], "model": {"mtp_damage": 0.3}},
        "c": {"engine": "remote", "url": "http://${HOST}"},
    },
    "workloads": {
        "w": {"kind": "words", "input_tokens": 1, "output_tokens": 2, "requests": 3, "temperature": 1.0},
        "v": {"extends": "w", "burst": True},
    },
    "matrix": {"requests": [8, 16], "concurrency": [1, 2]},
    "gates": {"mean_ttft_ms": {"margin": "40%", "reference": "a", "only": ["c", "w"]}, "acceptance_rate": 0.1,
              "output_throughput": "5%"},
    "warmup": {"requests": 2, "at_most": "1m"},
    "slo": {"ttft": "500ms"},
    "relations": {"c": {"metric": "output_throughput", "vs": "a", "at_least": 1.1, "only": ["w"]},
                  "a": [{"metric": "acceptance_rate", "vs": "c"}, {"metric": "mean_ttft_ms", "vs": "c", "margin": .1}]},
    "failed_requests": {"allowed": "0.1%", "limit": 0.01},
    "quarantine": [{"cases": "a/*", "metrics": ["mean_ttft_ms"], "owner": "me", "why": "known", "until": "2026-12-24"}],
    "budget": "5h",
}  # fmt: skip
ENVIRON = {"MODELS": "/m", "HOST": "h"}


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, inner in items for deeper in paths(inner, (*path, key)))]


words = st.sampled_from(
    ["a", "b", "c", "w", "v", "toy", "burst", "any", "40%", "5s", "${X}", "", "mean_ttft_ms", "x y"]
)
scalars = st.one_of(
    words, st.none(), st.booleans(), st.integers(-2, 2), st.floats(allow_nan=False), st.text(max_size=3)
)
keys = st.one_of(st.sampled_from(["extends", "engine", "only", "model", "margin", "load", "loads", "env", "x"]), words)
junk = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2))
changes = st.lists(
    st.tuples(st.sampled_from(paths(SUITE)[1:]), st.just("delete") | st.tuples(junk)), min_size=1, max_size=4
)


def changed(edits: list[tuple[tuple[Any, ...], Any]]) -> dict[str, Any]:
    suite = copy.deepcopy(SUITE)
    for path, edit in edits:
        target: Any = suite
        try:
            for step in path[:-1]:
                target = target[step]
            if edit == "delete":
                del target[path[-1]]
            else:
                target[path[-1]] = copy.deepcopy(edit[0])
        except (KeyError, IndexError, TypeError):
            continue  # an earlier edit took the place away
    return suite


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("suite") / "full.llmperf.yaml"


def test_the_unchanged_suite_is_right(path: Path) -> None:
    path.write_text(yaml.safe_dump(SUITE))
    assert len(suitefile.expand(suitefile.load_suite(path, overrides={}, environ=ENVIRON))) == 10


def attempt(path: Path, overrides: dict[str, str]) -> tuple[Suite | None, list[Mistake]]:
    try:
        suite = suitefile.load_suite(path, overrides=overrides, environ=ENVIRON)
        suitefile.expand(suite)
    except SuiteError as error:
        return None, error.mistakes
    return suite, []


@settings(max_examples=300, deadline=None)
@given(changes)
def test_a_damaged_suite_is_a_suite_or_a_list_of_mistakes(path: Path, edits: list[tuple[tuple[Any, ...], Any]]) -> None:
    text = yaml.safe_dump(changed(edits), allow_unicode=True)
    path.write_text(text, encoding="utf-8")
    suite, mistakes = attempt(path, {})
    if suite is None:
        assert mistakes
        assert all(1 <= mistake.line <= max(len(text.splitlines()), 1) for mistake in mistakes)
    else:
        cases = suitefile.expand(suite)
        assert all(case.gates for case in cases)
        assert len({case.id for case in cases}) == len(cases)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from([".".join(map(str, p)) for p in paths(SUITE)[1:]]) | st.text(max_size=8), words))
def test_any_override_is_taken_left_alone_or_a_mistake(path: Path, overrides: dict[str, str]) -> None:
    path.write_text(yaml.safe_dump(SUITE), encoding="utf-8")
    suite, mistakes = attempt(path, overrides)
    assert mistakes if suite is None else suite.overrides.items() <= overrides.items()
