"""git in a project, as somebody without a configuration of their own."""

from __future__ import annotations

import subprocess

from tests.projects import Project


def git(project: Project, *args: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *args], cwd=project.folder, check=True, capture_output=True)
