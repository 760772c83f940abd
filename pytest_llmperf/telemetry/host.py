"""This host: which hardware results of it are comparable with, and how busy it is."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pytest_llmperf.clock import Clock


@dataclass(frozen=True, slots=True)
class Host:
    """Facts of the machine.

    Attributes:
        slug: hardware class in baseline paths (``8x-nvidia-h200``, ``2x-amd-epyc-7b13``).
        label: the same for people.
        node: host name.
        cores: CPU cores that this process may use.
    """

    slug: str
    label: str
    node: str
    cores: int


def read(gpu_names: tuple[str, ...] = (), proc: Path = Path("/proc")) -> Host:
    """The host with the GPUs that are to be used, () for none: then its CPU is the hardware class."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    names = gpu_names or (_cpu_name(proc),) * cores
    label = f"{len(names)}x {names[0]}"
    return Host(slug=slug(label), label=label, node=platform.node(), cores=cores)


BUSY_SAMPLE_S = 0.3
"""Long enough for 30 ticks of the kernel's CPU accounting on each core."""


def busy_share(clock: Clock, proc: Path = Path("/proc")) -> float | None:
    """Share of all cores' time that was not idle during ``BUSY_SAMPLE_S``; None where the system does not say.

    The load average will not do: it remembers the session before this one for a minute.
    """
    try:
        before = _cpu_ticks(proc)
        clock.sleep(BUSY_SAMPLE_S)
        after = _cpu_ticks(proc)
    except (OSError, ValueError, IndexError):
        return None
    total, idle = (new - old for new, old in zip(after, before, strict=True))
    return 1 - idle / total if total > 0 else None


def _cpu_ticks(proc: Path) -> tuple[int, int]:
    """All and idle ticks (idle and waiting for disks) of all cores, from the first line of /proc/stat."""
    fields = [int(field) for field in (proc / "stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]


def governor(sys: Path = Path("/sys")) -> str:
    """How the kernel chooses the CPUs' clocks ("performance", "powersave"); "" where it has no say, as in most VMs."""
    found = set()
    for path in sys.glob("devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"):
        with suppress(OSError):
            found.add(path.read_text().strip())
    return " and ".join(sorted(found))


def elsewhere(name: str) -> Host:
    """Another machine, of which only the name is known; results of it are comparable with its own alone."""
    return Host(slug=slug(f"at {name}"), label=f"at {name}", node=name, cores=0)


def slug(label: str) -> str:
    """A label as a folder name: lower case, letters and digits, single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")


def _cpu_name(proc: Path) -> str:
    try:
        text = (proc / "cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    name = found[1] if found else platform.machine()
    return re.sub(r"\((?:R|TM)\)|\bCPU\b|\bProcessor\b|@.*$|\d+-Core", "", name, flags=re.IGNORECASE).strip()
