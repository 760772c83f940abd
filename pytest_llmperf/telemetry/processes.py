"""Processes by number, as /proc describes them: is one here, what is it, whose is it, and what has it started?"""

from __future__ import annotations

import pwd
from contextlib import suppress
from pathlib import Path

from pytest_llmperf.model.gpu import Process

PROC = Path("/proc")


def describe(pid: int, memory_bytes: int | None, proc: Path = PROC) -> Process:
    """A process that a driver names. In a container it may be a number of the host's, which is nobody here.

    A number that exists here and can be seen to hold no NVIDIA device is such a one too: a namesake.
    """
    folder = proc / str(pid)
    if not folder.is_dir() or _is_namesake(folder):
        return Process(pid=pid, memory_bytes=memory_bytes, here=False)
    return Process(pid=pid, memory_bytes=memory_bytes, name=_name(folder), user=_user(folder))


def tree(root: int, proc: Path = PROC) -> frozenset[int]:
    """A process and all that descend from it, of those that are seen."""
    parents: dict[int, int] = {}
    for folder in proc.glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):
            # the name in parentheses may hold spaces and parentheses itself
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return frozenset(found)


def running(name: str, proc: Path = PROC) -> bool:
    """Whether a process of this name is seen; the kernel keeps 15 characters of it."""
    for folder in proc.glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "comm").read_text().strip() == name[:15]:
                return True
    return False


def _is_namesake(folder: Path) -> bool:
    try:
        files = list((folder / "fd").iterdir())
    except OSError:  # somebody else's
        return False
    links = []
    for file in files:
        with suppress(OSError):
            links.append(str(file.readlink()))
    return bool(links) and not any(link.startswith("/dev/nvidia") for link in links)


def _name(folder: Path) -> str:
    with suppress(OSError):
        arguments = (folder / "cmdline").read_bytes().split(b"\0")
        if arguments[0]:
            return arguments[0].decode(errors="replace")
    with suppress(OSError):
        return (folder / "comm").read_text().strip()
    return ""


def _user(folder: Path) -> str:
    try:
        owner = folder.stat().st_uid
        return pwd.getpwuid(owner).pw_name
    except (OSError, KeyError):
        return ""
