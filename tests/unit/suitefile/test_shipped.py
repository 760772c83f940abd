"""The files we ship, with the real adapters: suites, the JSON Schema, the examples of the documentation."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf import registry, suitefile
from pytest_llmperf.suitefile.document import parse
from tests.unit.suitefile.conftest import forget

ROOT = Path(__file__).parents[3]
SCHEMA = ROOT / "docs" / "llmperf.schema.json"
DOCS = (ROOT / "docs" / "suites.md").read_text(encoding="utf-8")
CHECKS = (ROOT / "docs" / "machine.md").read_text(encoding="utf-8")
SUITES = sorted(ROOT.glob("suites/**/*.llmperf.yaml"))
BUILTIN = dict(registry.BUILTIN["engine"])


@pytest.fixture(autouse=True)
def adapters(toys: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real ones instead of the toys."""
    monkeypatch.setitem(registry.BUILTIN, "engine", BUILTIN)
    forget()


def test_the_quickstart() -> None:
    suite = suitefile.load_suite(ROOT / "suites/quickstart/quickstart.llmperf.yaml", overrides={}, environ={})
    [healthy] = suitefile.expand(suite)
    assert healthy.id == "healthy/words"
    assert healthy.groups == ("throughput", "latency", "acceptance")
    assert [(gate.metric.name, gate.margin, gate.reference, gate.cv) for gate in healthy.gates] == [
        ("acceptance_length", 0.03, None, 0.0),
        ("output_throughput", 0.4, "healthy", None),
        ("mean_e2el_ms", 0.6, "healthy", None),
    ]
    [damaged] = suitefile.expand(suite, engines=["damaged-mtp"])
    assert damaged.id == "healthy/words"
    assert damaged.arm.options == {"speculative_tokens": 3}
    assert damaged.arm.model.shape == {"mtp_damage": 0.3}


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_a_shipped_suite_names_the_schema(path: Path) -> None:
    first = path.read_text(encoding="utf-8").splitlines()[0]
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert found is not None
    assert (path.parent / found[1]).resolve() == SCHEMA


def test_the_committed_schema_is_current(request: pytest.FixtureRequest) -> None:
    schema = suitefile.json_schema()
    if request.config.getoption("--update-golden"):
        SCHEMA.write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")
    committed = json.loads(SCHEMA.read_text(encoding="utf-8"))
    assert committed == schema, "run this test with --update-golden and review the diff"


def test_the_schema_knows_short_forms_metrics_and_adapters() -> None:
    schema = suitefile.json_schema()
    assert {"const": "burst"} in schema["properties"]["load"]["anyOf"]
    assert {"const": "any"} in schema["properties"]["hardware"]["anyOf"]
    assert "acceptance_length" in schema["properties"]["gates"]["properties"]
    arm, model = schema["$defs"]["ArmKeys"], schema["$defs"]["ModelKeys"]
    assert {"args+", "speculative_tokens", "url"} <= set(arm["properties"])
    assert {"layers", "mtp_damage"} <= set(model["properties"])
    assert set(arm["then"]["propertyNames"]["enum"]) == set(arm["properties"])


def test_every_reference_in_the_schema_is_defined() -> None:
    schema = suitefile.json_schema()
    references = re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(schema))
    assert references
    assert set(references) <= set(schema["$defs"])


def properties(schema: dict[str, Any]) -> Iterator[str]:
    for kind in [schema, *schema["$defs"].values()]:
        yield from kind.get("properties", ())


def test_every_key_is_documented() -> None:
    missing = [key for key in properties(suitefile.json_schema()) if f"`{key}`" not in DOCS + CHECKS]
    assert not missing


EXAMPLES = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.splitlines()[0])
def test_the_examples_of_the_documentation_are_right(example: str, tmp_path: Path) -> None:
    path = tmp_path / "example.llmperf.yaml"
    whole = {
        "suite": "suite: example\n",
        "model": "model: {id: tiny-dsv3-mtp}\n",
        "engines": "engines:\n  a: {engine: embedded}\n",
        "workloads": "workloads:\n  words: {kind: words, input_tokens: 64, output_tokens: 128, requests: 32}\n",
        "load": "load: burst\n",
        "gates": "gates:\n  output_throughput: 5%\n",
    }
    written = parse(example, "example").data
    if written.keys() & {"loads"} or "concurrency" in written.get("matrix", {}):
        del whole["load"]
    path.write_text(example + "".join(text for key, text in whole.items() if key not in written), encoding="utf-8")
    suite = suitefile.load_suite(
        path, overrides={}, environ={"MODELS": "/models", "HOST": "localhost", "DATA": "/data"}
    )
    assert suitefile.expand(suite)


def test_loading_a_suite_imports_nothing_heavy() -> None:
    code = (
        "import os, sys, pathlib; from pytest_llmperf import suitefile;"
        "suite = suitefile.load_suite(pathlib.Path(sys.argv[1]), overrides={}, environ=os.environ);"
        "suitefile.expand(suite);"
        "print([name for name in ('numpy', 'scipy', 'uvloop', 'requests', 'xllamacpp', 'gguf') if name in sys.modules])"
    )
    path = ROOT / "suites/quickstart/quickstart.llmperf.yaml"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
