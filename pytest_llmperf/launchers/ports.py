"""Ports: who listens on one of this machine's."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
_LISTEN = "0A"
_TABLES = ("net/tcp", "net/tcp6")


def holder(port: int, proc: Path = PROC) -> str | None:
    """``"pid 123 (command line)"`` of the process that listens on ``port``.

    ``"a process that cannot be read (another user's?)"`` when somebody does and it cannot be told who; None when
    nobody listens.
    """
    pid = listener(port, proc)
    if pid is not None:
        return f"pid {pid} ({_command_line(proc / str(pid))})"
    return "a process that cannot be read (another user's?)" if _sockets(port, proc) else None


def listener(port: int, proc: Path = PROC) -> int | None:
    """The process that listens on ``port``; None where there is none, or none that can be read."""
    if not (sockets := _sockets(port, proc)):
        return None
    for entry in proc.iterdir():
        if entry.name.isdecimal() and sockets & _open_files(entry / "fd"):
            return int(entry.name)
    return None


def _sockets(port: int, proc: Path) -> set[str]:
    return {f"socket:[{inode}]" for table in _TABLES for inode in _listening(proc / table, port)}


def _listening(table: Path, port: int) -> list[str]:
    """Inodes of the listening sockets of a /proc/net/tcp table; its rows: sl local remote state ... inode."""
    try:
        rows = [line.split() for line in table.read_text().splitlines()[1:]]
    except OSError:
        return []
    return [row[9] for row in rows if row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port]


def _open_files(folder: Path) -> set[str]:
    found = set()
    with suppress(OSError):  # not ours to read, or gone
        for entry in folder.iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                found.add(str(entry.readlink()))
    return found


def _command_line(folder: Path) -> str:
    try:
        words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "?"
    return " ".join(words).strip()[:200]
