"""A host as its kernel's files describe it, below roots that tests can replace. Reads only."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.model.host_facts import HostFacts, InfinibandPort
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.telemetry import environment, host, kernel_log, pci, processes
from pytest_llmperf.telemetry.kernel_file import listed, parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Where the kernel's files are."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    root: Path = Path("/")


ROOTS = Roots()


def read(*, roots: Roots = ROOTS, pid: int | None = None, clock: Clock = CLOCK) -> HostFacts:
    """Everything once, in some milliseconds. ``pid`` is the engine's process; None for ours."""
    proc, sys = roots.proc, roots.sys
    cpu = sys / "devices/system/cpu"
    return HostFacts(
        node=platform.node(),
        kernel=parsed(proc / "sys/kernel/osrelease", str),
        governor=_governor(sys),
        turbo=_turbo(cpu),
        load_1m=parsed(proc / "loadavg", lambda text: float(text.split()[0])),
        cpu_pressure_percent=parsed(proc / "pressure/cpu", _pressure),
        cpu_quota_cores=parsed(_cgroup(roots) / "cpu.max", _quota),
        cpu_throttled=parsed(_cgroup(roots) / "cpu.stat", _throttled),
        cpu_thermal_throttles=_thermal(cpu),
        cpus=_cpus(),
        numa_nodes=_numa_nodes(sys),
        numa_balancing=parsed(proc / "sys/kernel/numa_balancing", lambda text: int(text) != 0),
        transparent_hugepages=parsed(sys / "kernel/mm/transparent_hugepage/enabled", _chosen),
        memlock_bytes=_limit(resource.RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK"),
        open_files=_limit(resource.RLIMIT_NOFILE, "RLIMIT_NOFILE"),
        shm_bytes=_shm(roots.dev / "shm"),
        iommu=listed(sys / "class/iommu").to(len),
        acs=pci.acs(sys),
        infiniband=_infiniband(sys / "class/infiniband"),
        clock_error_ms=_clock_error(),
        xids=kernel_log.xids(roots.dev / "kmsg", clock),
        fabric_manager=_fabric_manager(roots),
        runtime=_runtime(roots),
        environment=environment.of(pid, proc),
    )


def _governor(sys: Path) -> Reading[str]:
    evidence = "scaling_governor of all CPUs"
    found = host.governor(sys)
    return Reading(found, evidence=evidence) if found else lacking(Answer.UNSUPPORTED, f"{evidence}: none")


def _turbo(cpu: Path) -> Reading[bool]:
    intel = parsed(cpu / "intel_pstate/no_turbo", lambda text: int(text) == 0)
    return intel if intel.known else parsed(cpu / "cpufreq/boost", lambda text: int(text) != 0)


def _pressure(text: str) -> float:
    return float(re.findall(r"^some avg10=([\d.]+)", text, re.MULTILINE)[0])


def _cgroup(roots: Roots) -> Path:
    """The folder of our cgroup (version 2); its top where we are in a namespace of our own."""
    path = parsed(roots.proc / "self/cgroup", lambda text: re.findall(r"^0::(/.*)$", text, re.MULTILINE)[0])
    folder = roots.sys / "fs/cgroup" / (path.value or "/").lstrip("/")
    return folder if (folder / "cpu.max").exists() else roots.sys / "fs/cgroup"


def _quota(text: str) -> float:
    quota, period = text.split()
    return 0.0 if quota == "max" else int(quota) / int(period)


def _throttled(text: str) -> int:
    return int(dict(line.split() for line in text.splitlines())["nr_throttled"])


def _thermal(cpu: Path) -> Reading[int]:
    paths = sorted(cpu.glob("cpu[0-9]*/thermal_throttle/*_throttle_count"))
    evidence = f"{cpu}/cpu*/thermal_throttle/*_throttle_count"
    if not paths:
        return lacking(Answer.UNSUPPORTED, f"{evidence}: none")
    counts = [parsed(path, int).value for path in paths]
    return Reading(sum(count for count in counts if count is not None), evidence=evidence)


def _cpus() -> Reading[tuple[int, ...]]:
    if not hasattr(os, "sched_getaffinity"):
        return lacking(Answer.UNSUPPORTED, "sched_getaffinity")
    return Reading(tuple(sorted(os.sched_getaffinity(0))), evidence="sched_getaffinity")


def _numa_nodes(sys: Path) -> Reading[Mapping[int, tuple[int, ...]]]:
    folder = sys / "devices/system/node"
    nodes = {int(path.name[4:]): parsed(path / "cpulist", _cpu_list) for path in folder.glob("node[0-9]*")}
    if not nodes:
        return lacking(Answer.UNSUPPORTED, f"{folder}: no nodes")
    return Reading({node: cpus.value or () for node, cpus in sorted(nodes.items())}, evidence=f"{folder}/node*/cpulist")


def _cpu_list(text: str) -> tuple[int, ...]:
    """``0-3,8`` is 0, 1, 2, 3, 8."""
    parts = [[int(end) for end in part.split("-")] for part in text.split(",") if part]
    return tuple(cpu for part in parts for cpu in range(part[0], part[-1] + 1))


def _chosen(text: str) -> str:
    return str(re.findall(r"\[(\w+)\]", text)[0])


def _limit(which: int, name: str) -> Reading[int]:
    return Reading(resource.getrlimit(which)[0], evidence=name)


def _shm(folder: Path) -> Reading[int]:
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return lacking(Answer.UNSUPPORTED, f"{folder}: {error.strerror}")
    return Reading(found.f_frsize * found.f_blocks, evidence=f"statvfs {folder}")


def _infiniband(folder: Path) -> Reading[tuple[InfinibandPort, ...]]:
    devices = listed(folder)
    if devices.value is None:
        return lacking(devices.answer, devices.evidence)
    ports = [port for device in devices.value for port in sorted((device / "ports").glob("[0-9]*"))]
    return Reading(tuple(_port(port) for port in ports), evidence=f"{folder}/*/ports/*")


def _port(folder: Path) -> InfinibandPort:
    state = parsed(folder / "state", lambda text: text.rpartition(":")[2].strip())
    rate = parsed(folder / "rate", lambda text: float(text.split()[0]))
    errors = [
        parsed(folder / "counters" / name, int).value for name in ("symbol_error", "link_downed", "port_rcv_errors")
    ]
    known = [count for count in errors if count is not None]
    return InfinibandPort(
        device=folder.parents[1].name,
        port=int(folder.name),
        state=state.value or "unknown",
        rate_gbps=rate.value or 0.0,
        errors=sum(known) if known else None,
    )


def _clock_error() -> Reading[float]:
    """The kernel's bound for the error of the date, by ``adjtimex`` without a change; it grows where nobody syncs."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        buffer = (ctypes.c_long * 64)()  # struct timex; the first member says what to change: nothing
        state = libc.adjtimex(ctypes.byref(buffer))
    except (OSError, AttributeError) as error:
        return lacking(Answer.UNSUPPORTED, f"adjtimex: {error}")
    if state < 0:
        return lacking(Answer.UNKNOWN, f"adjtimex: {os.strerror(ctypes.get_errno())}")
    return Reading(buffer[3] / 1000, evidence="adjtimex: maxerror")


def _fabric_manager(roots: Roots) -> Reading[bool]:
    evidence = f"{roots.proc}/*/comm: nv-fabricmanager"
    if processes.running("nv-fabricmanager", roots.proc):
        return Reading(value=True, evidence=evidence)
    contained = (_runtime(roots).value or "").partition(" in ")[0] not in {"", "none"}
    if contained:
        return lacking(Answer.UNKNOWN, f"{evidence}: the host's processes are not seen in a container")
    return Reading(value=False, evidence=evidence)


_CONTAINERS = ("kubepods", "docker", "containerd", "podman", "libpod", "lxc", "slurm")


def _runtime(roots: Roots) -> Reading[str]:
    """What we run in: ``docker``, ``none``, ``docker in a virtual machine``."""
    parts = [_container(roots), *(["a virtual machine"] if _virtual(roots) else [])]
    return Reading(" in ".join(parts), evidence="/.dockerenv, cgroup, kernel version and CPU flags")


def _container(roots: Roots) -> str:
    version = parsed(roots.proc / "version", str).value or ""
    if "gVisor" in version:
        return "gVisor"
    if (roots.root / ".dockerenv").exists():
        return "docker"
    if (roots.root / "run/.containerenv").exists():
        return "podman"
    cgroup = parsed(roots.proc / "1/cgroup", str).value or ""
    return next((name for name in _CONTAINERS if name in cgroup), "none")


def _virtual(roots: Roots) -> bool:
    return "hypervisor" in (parsed(roots.proc / "cpuinfo", lambda text: text.partition("\n\n")[0]).value or "").split()
