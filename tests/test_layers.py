"""Imports point down: the layers of the package, and what the pure ones may not touch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "pytest_llmperf"

# Top to bottom. An import only points to a lower row; members of one row never import each other.
LAYERS = (
    "__init__ plugin cli",
    "pipeline",
    "engines launchers load telemetry leases baseline history reports suitefile datasets injection",
    "judge",
    "checks workload metrics stats",
    "model registry",
    "errors clock",
)
RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row.split()}
PURE = {"judge", "checks", "workload", "metrics", "stats", "model"}
WORLD = {"asyncio", "subprocess", "socket", "time", "threading", "multiprocessing", "requests", "os"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def home_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import in the file, also those inside functions; relative made absolute."""
    package = ["pytest_llmperf", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{start}.{alias.name}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    home = home_of(path)
    wrong = []
    for line, name in imports_of(path):
        parts = name.split(".")
        if parts[0] != "pytest_llmperf" or len(parts) == 1:
            continue
        target = parts[1]
        if target == "__version__":
            continue
        assert target in RANK, f"{path}:{line}: {target} has no layer"
        if target != home and RANK[target] <= RANK[home]:
            wrong.append(f"{path}:{line}: {home} (row {RANK[home]}) imports {name} (row {RANK[target]})")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_plugin_knows_pytest_and_pure_rows_touch_no_world(path: Path) -> None:
    home = home_of(path)
    for line, name in imports_of(path):
        top = name.split(".")[0]
        if home != "plugin":
            assert top not in {"pytest", "_pytest", "xdist"}, f"{path}:{line}: only plugin imports {top}"
        if home in PURE:
            assert top not in WORLD, f"{path}:{line}: {home} is pure and imports {top}"


def test_every_module_has_a_layer() -> None:
    assert {home_of(path) for path in modules()} <= set(RANK)
