"""A host as its kernel's files describe it, below roots that tests can replace. Reads only."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import platform
import re
import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.model.host_facts import HostFacts, InfinibandPort, Xid
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.telemetry import environment, host, processes

T = TypeVar("T")


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
        kernel=_file(proc / "sys/kernel/osrelease", str),
        governor=_governor(sys),
        turbo=_turbo(cpu),
        load_1m=_file(proc / "loadavg", lambda text: float(text.split()[0])),
        cpu_pressure_percent=_file(proc / "pressure/cpu", _pressure),
        cpu_quota_cores=_file(_cgroup(roots) / "cpu.max", _quota),
        cpu_throttled=_file(_cgroup(roots) / "cpu.stat", _throttled),
        cpu_thermal_throttles=_thermal(cpu),
        cpus=_cpus(),
        numa_nodes=_numa_nodes(sys),
        numa_balancing=_file(proc / "sys/kernel/numa_balancing", lambda text: int(text) != 0),
        transparent_hugepages=_file(sys / "kernel/mm/transparent_hugepage/enabled", _chosen),
        memlock_bytes=_limit(resource.RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK"),
        open_files=_limit(resource.RLIMIT_NOFILE, "RLIMIT_NOFILE"),
        shm_bytes=_shm(roots.dev / "shm"),
        iommu=_listed(sys / "class/iommu").to(len),
        acs=_acs(sys),
        infiniband=_infiniband(sys / "class/infiniband"),
        clock_error_ms=_clock_error(),
        xids=_xids(roots.dev / "kmsg", clock),
        fabric_manager=_fabric_manager(roots),
        runtime=_runtime(roots),
        environment=environment.of(pid, proc),
    )


def gpu_numa_node(bus_id: str, sys: Path = ROOTS.sys) -> Reading[int]:
    """The NUMA node of a PCI device by NVML's bus id; unsupported where the firmware names none (-1)."""
    address = re.sub(r"^0000(?=[0-9a-f]{4}:)", "", bus_id.lower())
    node = _file(sys / "bus/pci/devices" / address / "numa_node", int)
    return lacking(Answer.UNSUPPORTED, f"{node.evidence}: -1") if node.value is not None and node.value < 0 else node


def _file(path: Path, parse: Callable[[str], T]) -> Reading[T]:
    """A file that is not there is unsupported, one that may not be read is not permitted, an odd one is unknown."""
    try:
        text = path.read_text(errors="replace").strip()
    except PermissionError:
        return lacking(Answer.NOT_PERMITTED, f"{path}: permission denied")
    except OSError as error:
        return lacking(Answer.UNSUPPORTED, f"{path}: {error.strerror}")
    try:
        return Reading(parse(text), evidence=str(path))
    except (ValueError, IndexError, KeyError):
        return lacking(Answer.UNKNOWN, f"{path}: {text[:200]!r}")


def _listed(folder: Path) -> Reading[list[Path]]:
    try:
        return Reading(sorted(folder.iterdir()), evidence=str(folder))
    except PermissionError:
        return lacking(Answer.NOT_PERMITTED, f"{folder}: permission denied")
    except OSError as error:
        return lacking(Answer.UNSUPPORTED, f"{folder}: {error.strerror}")


def _governor(sys: Path) -> Reading[str]:
    evidence = "scaling_governor of all CPUs"
    found = host.governor(sys)
    return Reading(found, evidence=evidence) if found else lacking(Answer.UNSUPPORTED, f"{evidence}: none")


def _turbo(cpu: Path) -> Reading[bool]:
    intel = _file(cpu / "intel_pstate/no_turbo", lambda text: int(text) == 0)
    return intel if intel.known else _file(cpu / "cpufreq/boost", lambda text: int(text) != 0)


def _pressure(text: str) -> float:
    return float(re.findall(r"^some avg10=([\d.]+)", text, re.MULTILINE)[0])


def _cgroup(roots: Roots) -> Path:
    """The folder of our cgroup (version 2); its top where we are in a namespace of our own."""
    path = _file(roots.proc / "self/cgroup", lambda text: re.findall(r"^0::(/.*)$", text, re.MULTILINE)[0])
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
    counts = [_file(path, int).value for path in paths]
    return Reading(sum(count for count in counts if count is not None), evidence=evidence)


def _cpus() -> Reading[tuple[int, ...]]:
    if not hasattr(os, "sched_getaffinity"):
        return lacking(Answer.UNSUPPORTED, "sched_getaffinity")
    return Reading(tuple(sorted(os.sched_getaffinity(0))), evidence="sched_getaffinity")


def _numa_nodes(sys: Path) -> Reading[Mapping[int, tuple[int, ...]]]:
    folder = sys / "devices/system/node"
    nodes = {int(path.name[4:]): _file(path / "cpulist", _cpu_list) for path in folder.glob("node[0-9]*")}
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


_ACS, _ACS_CONTROL, _SOURCE_VALIDATION = 0x000D, 6, 1


def _acs(sys: Path) -> Reading[tuple[str, ...]]:
    """Bridges with ACS source validation, from their extended configuration, which only root can read."""
    folder = sys / "bus/pci/devices"
    devices = _listed(folder)
    if devices.value is None:
        return lacking(devices.answer, devices.evidence)
    on: list[str] = []
    for device in devices.value:
        kind = _file(device / "class", lambda text: int(text, 16) >> 8)
        if kind.value != 0x0604:  # noqa: PLR2004 (PCI-to-PCI bridge)
            continue
        try:
            control = _acs_control((device / "config").read_bytes())
        except (OSError, PermissionError):
            return lacking(Answer.NOT_PERMITTED, f"{device}/config: needs root")
        if control is not None and control & _SOURCE_VALIDATION:
            on.append(device.name)
    return Reading(tuple(on), evidence=f"{folder}/*/config")


def _acs_control(config: bytes) -> int | None:
    """The control register of the ACS capability; None without one.

    Raises:
        PermissionError: the extended part was not given.
    """
    if len(config) <= 0x100:  # noqa: PLR2004 (the part that everybody may read)
        raise PermissionError
    at, seen = 0x100, set[int]()
    while at and at not in seen and at + 8 <= len(config):
        seen.add(at)
        header = int.from_bytes(config[at : at + 4], "little")
        if header & 0xFFFF == _ACS:
            return int.from_bytes(config[at + _ACS_CONTROL : at + _ACS_CONTROL + 2], "little")
        at = header >> 20
    return None


def _infiniband(folder: Path) -> Reading[tuple[InfinibandPort, ...]]:
    devices = _listed(folder)
    if devices.value is None:
        return lacking(devices.answer, devices.evidence)
    ports = [port for device in devices.value for port in sorted((device / "ports").glob("[0-9]*"))]
    return Reading(tuple(_port(port) for port in ports), evidence=f"{folder}/*/ports/*")


def _port(folder: Path) -> InfinibandPort:
    state = _file(folder / "state", lambda text: text.rpartition(":")[2].strip())
    rate = _file(folder / "rate", lambda text: float(text.split()[0]))
    errors = [
        _file(folder / "counters" / name, int).value for name in ("symbol_error", "link_downed", "port_rcv_errors")
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


_XID = re.compile(r"^\d+,\d+,(\d+),.*?NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)")
_KERNEL_LOG_BYTES = 16 << 20


def _xids(kmsg: Path, clock: Clock) -> Reading[tuple[Xid, ...]]:
    """Error reports of the driver in the kernel log, whose stamps are microseconds since the machine started."""
    try:
        lines = _kernel_log(kmsg)
    except PermissionError:
        return lacking(Answer.NOT_PERMITTED, f"{kmsg}: permission denied")
    except OSError as error:
        return lacking(Answer.UNSUPPORTED, f"{kmsg}: {error.strerror}")
    now_us = clock.monotonic_ns() / 1000
    found = [match for line in lines if (match := _XID.match(line))]
    xids = (
        Xid(bus_id=bus, code=int(code), age_s=(now_us - int(at)) / 1e6) for at, bus, code in (m.groups() for m in found)
    )
    return Reading(tuple(xids), evidence=str(kmsg))


def _kernel_log(kmsg: Path) -> list[str]:
    """Everything that is there now: each read gives one record, and none would block."""
    descriptor = os.open(kmsg, os.O_RDONLY | os.O_NONBLOCK)
    records: list[bytes] = []
    size = 0
    try:
        while size < _KERNEL_LOG_BYTES:
            try:
                record = os.read(descriptor, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:  # records were overwritten while we read
                continue
            if not record:
                break
            records.append(record)
            size += len(record)
    finally:
        os.close(descriptor)
    return b"".join(records).decode(errors="replace").splitlines()


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
    version = _file(roots.proc / "version", str).value or ""
    if "gVisor" in version:
        return "gVisor"
    if (roots.root / ".dockerenv").exists():
        return "docker"
    if (roots.root / "run/.containerenv").exists():
        return "podman"
    cgroup = _file(roots.proc / "1/cgroup", str).value or ""
    return next((name for name in _CONTAINERS if name in cgroup), "none")


def _virtual(roots: Roots) -> bool:
    return "hypervisor" in (_file(roots.proc / "cpuinfo", lambda text: text.partition("\n\n")[0]).value or "").split()
