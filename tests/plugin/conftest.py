"""A project with one suite, whose engine is the scripted one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.projects import CONFTEST, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    made = Project(tmp_path)
    made.write()
    return made
