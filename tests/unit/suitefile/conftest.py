from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from pytest_llmperf import registry, suitefile
from pytest_llmperf.errors import SuiteError
from pytest_llmperf.model.suite import Suite

BASE = """\
suite: chat
model: {id: tiny}
engines:
  toy: {engine: toy}
workloads:
  words: {kind: words, input_tokens: 64, output_tokens: 128, requests: 32}
load: burst
gates:
  output_throughput: 5%
"""


def forget() -> None:
    registry._targets.cache_clear()
    registry.load.cache_clear()


@pytest.fixture(autouse=True)
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two engines, ``toy`` and ``remote``, and no others."""
    monkeypatch.setitem(
        registry.BUILTIN,
        "engine",
        {"toy": "tests.unit.suitefile.toy_engines:Toy", "remote": "tests.unit.suitefile.toy_engines:Remote"},
    )
    forget()
    yield
    forget()


Load = Callable[..., Suite]
Complaints = Callable[..., list[str]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads the text of a suite file."""

    def load(
        text: str, *, overrides: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
    ) -> Suite:
        path = tmp_path / "chat.llmperf.yaml"
        path.write_text(text, encoding="utf-8")
        return suitefile.load_suite(path, overrides=overrides or {}, environ=environ or {})

    return load


@pytest.fixture
def complaints(load: Load) -> Complaints:
    """The mistakes in the text of a suite file whose default arms are to run, as ``LINE: PATH: MESSAGE``."""

    def complaints(text: str, **given: Mapping[str, str]) -> list[str]:
        with pytest.raises(SuiteError) as caught:
            suitefile.expand(load(text, **given))
        return [str(mistake).partition("chat.llmperf.yaml:")[2].strip() for mistake in caught.value.mistakes]

    return complaints


def with_line(old: str, new: str) -> str:
    """The base suite with one text replaced."""
    assert BASE.count(old) == 1
    return BASE.replace(old, new)
