"""Fixtures of the project's own tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

GOLDEN = Path(__file__).parent / "golden"

# A deadline is a timed assert: on a busy machine it fails what is right.
settings.register_profile("llmperf", deadline=None)
settings.load_profile("llmperf")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite tests/golden from what is printed now; review the diff"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Benchmarks run once, to see that they work; ``--benchmark-enable`` measures."""
    if config.pluginmanager.hasplugin("benchmark") and not config.getoption("benchmark_enable"):
        config.option.benchmark_disable = True


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare text with a file of tests/golden; ``--update-golden`` writes the file and fails the test."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
            pytest.fail(f"{path} written; review the diff and run again without --update-golden")
        assert path.exists(), f"no {path}; write it with --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare
