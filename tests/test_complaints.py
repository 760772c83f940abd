"""Every complaint of tests/complaints.md has tests, and they exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROW = re.compile(r"^\| (?P<complaint>[\w./-]+#\d+) \| (?P<wrong>[^|]+) \| (?P<rule>[^|]+) \| (?P<tests>[^|]+) \|$")
NODE = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
PLACES = [TESTS / "unit" / "load" / "test_client_complaints.py", *sorted(TESTS.glob("unit/*/test_known_complaints.py"))]
"""Files of nothing but complaints."""


def table() -> list[re.Match[str]]:
    lines = (TESTS / "complaints.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| complaint ")]
    found = [match for line in rows if (match := ROW.match(line))]
    assert len(found) == len(rows), f"no row: {[line for line in rows if not ROW.match(line)]}"
    return found


@cache
def names_in(file: Path) -> frozenset[str]:
    """Names of the test functions at the top of a file."""
    module = ast.parse(file.read_text(encoding="utf-8"))
    functions = [node.name for node in module.body if isinstance(node, ast.FunctionDef)]
    assert len(functions) == len(set(functions)), f"{file}: a test hides another one of its name"
    return frozenset(name for name in functions if name.startswith("test_"))


@pytest.mark.parametrize("row", table(), ids=lambda row: str(row["complaint"]))
def test_a_complaint_has_tests_that_exist(row: re.Match[str]) -> None:
    nodes = NODE.findall(row["tests"])
    assert nodes
    assert len(nodes) == len(row["tests"].split("<br>"))
    for file, name in nodes:
        assert (TESTS / file).is_file(), file
        assert name in names_in(TESTS / file), f"no {name} in {file}"


def test_complaints_are_told_once() -> None:
    told = [row["complaint"] for row in table()]
    assert len(told) == len(set(told)) > 50


@pytest.mark.parametrize("place", PLACES, ids=lambda place: str(place.relative_to(TESTS)))
def test_a_test_of_a_complaint_is_in_the_table(place: Path) -> None:
    listed = {name for row in table() for file, name in NODE.findall(row["tests"]) if TESTS / file == place}
    assert names_in(place) == listed
