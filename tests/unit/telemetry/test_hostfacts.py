"""A host as files under roots of our own: what is there, what is not, what may not be read, what is odd."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_llmperf.clock import FakeClock
from pytest_llmperf.model.host_facts import HostFacts, InfinibandPort, Xid
from pytest_llmperf.model.reading import Answer, Reading
from pytest_llmperf.telemetry import environment, hostfacts, kernel_log, pci, processes
from pytest_llmperf.telemetry.hostfacts import Roots

Write = Callable[[str, str], None]


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    return Roots(proc=tmp_path / "proc", sys=tmp_path / "sys", dev=tmp_path / "dev", root=tmp_path)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(path: str, text: str) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    return file


def read(roots: Roots) -> HostFacts:
    return hostfacts.read(roots=roots, clock=FakeClock(now_ns=7_300_000_000_000))


FULL = {
    "proc/sys/kernel/osrelease": "6.8.0-40-generic\n",
    "proc/loadavg": "1.25 2.00 3.00 1/234 5678\n",
    "proc/pressure/cpu": "some avg10=12.34 avg60=1.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00\n",
    "proc/self/cgroup": "0::/job\n",
    "proc/sys/kernel/numa_balancing": "1\n",
    "proc/cpuinfo": "processor : 0\nflags\t: fpu vme hypervisor\n\nprocessor : 1\nflags\t: fpu\n",
    "proc/version": "Linux version 6.8.0",
    "proc/1/cgroup": "0::/kubepods.slice/pod1\n",
    "proc/77/comm": "nv-fabricmanage\n",
    "sys/fs/cgroup/job/cpu.max": "400000 100000\n",
    "sys/fs/cgroup/job/cpu.stat": "usage_usec 1\nnr_periods 9\nnr_throttled 3\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "2\n",
    "sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count": "3\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
    "sys/devices/system/node/node0/cpulist": "0-2,8\n",
    "sys/devices/system/node/node1/cpulist": "\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "sys/class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n",
    "sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error": "2\n",
    "sys/class/infiniband/mlx5_0/ports/1/counters/link_downed": "1\n",
    "dev/kmsg": "6,1,100,-;usb 1-1: new device\n4,2,7200000000,-;NVRM: Xid (PCI:0000:18:00): 79, pid=1, GPU\n",
}


def test_every_file_is_read(roots: Roots, write: Write) -> None:
    for path, text in FULL.items():
        write(path, text)
    host = read(roots)
    assert host.kernel.value == "6.8.0-40-generic"
    assert (host.governor.value, host.turbo.value, host.load_1m.value) == ("performance", True, 1.25)
    assert host.cpu_pressure_percent.value == 12.34
    assert (host.cpu_quota_cores.value, host.cpu_throttled.value) == (4.0, 3)
    assert host.cpu_thermal_throttles.value == 5
    assert host.numa_nodes.value == {0: (0, 1, 2, 8), 1: ()}
    assert (host.numa_balancing.value, host.transparent_hugepages.value) == (True, "madvise")
    assert host.infiniband.value == (
        InfinibandPort(device="mlx5_0", port=1, state="ACTIVE", rate_gbps=400.0, errors=3),
    )
    assert host.xids.value == (Xid(bus_id="0000:18:00", code=79, age_s=100.0),)
    assert host.fabric_manager.value is True
    assert host.runtime.value == "kubepods in a virtual machine"
    assert host.cpus.value == tuple(sorted(os.sched_getaffinity(0)))
    assert host.open_files.value is not None


def test_where_nothing_is_everything_is_unsupported_and_nothing_is_0(roots: Roots) -> None:
    host = read(roots)
    for name in ("kernel", "governor", "turbo", "load_1m", "cpu_pressure_percent", "cpu_quota_cores", "cpu_throttled",
                 "cpu_thermal_throttles", "numa_nodes", "numa_balancing", "transparent_hugepages", "shm_bytes", "iommu",
                 "acs", "infiniband", "xids"):  # fmt: skip
        reading: Reading[object] = getattr(host, name)
        assert (reading.value, reading.answer) == (None, Answer.UNSUPPORTED), name
        assert reading.evidence, name
    assert host.runtime.value == "none"


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("proc/loadavg", "", "load_1m"),
        ("proc/pressure/cpu", "none avg10=1", "cpu_pressure_percent"),
        ("sys/fs/cgroup/cpu.max", "max", "cpu_quota_cores"),
        ("sys/fs/cgroup/cpu.stat", "nr_periods 1", "cpu_throttled"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always", "transparent_hugepages"),
        ("proc/sys/kernel/numa_balancing", "maybe", "numa_balancing"),
    ],
)
def test_an_odd_file_is_unknown_with_its_text(roots: Roots, write: Write, path: str, text: str, name: str) -> None:
    write(path, text)
    write("sys/fs/cgroup/cpu.max" if name == "cpu_throttled" else path, text)
    reading: Reading[object] = getattr(read(roots), name)
    assert (reading.value, reading.answer) == (None, Answer.UNKNOWN)
    assert repr(text) in reading.evidence


def test_no_limit_is_no_quota(roots: Roots, write: Write) -> None:
    write("sys/fs/cgroup/cpu.max", "max 100000\n")
    assert read(roots).cpu_quota_cores.value == 0.0


def test_what_may_not_be_read_is_not_permitted(roots: Roots, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("proc/loadavg", "1 2 3")
    write("dev/kmsg", "")

    def refuse(*_: object, **__: object) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(Path, "iterdir", refuse)
    monkeypatch.setattr(os, "open", refuse)
    host = read(roots)
    assert host.load_1m.answer is host.infiniband.answer is host.xids.answer is Answer.NOT_PERMITTED


@pytest.mark.parametrize(
    ("files", "runtime"),
    [
        ({".dockerenv": ""}, "docker"),
        ({"run/.containerenv": ""}, "podman"),
        ({"proc/version": "Linux version 4.4.0 gVisor"}, "gVisor"),
        ({"proc/1/cgroup": "12:cpu:/lxc/x"}, "lxc"),
        ({"proc/cpuinfo": "flags : fpu hypervisor\n"}, "none in a virtual machine"),
    ],
)
def test_what_we_run_in(roots: Roots, write: Write, files: dict[str, str], runtime: str) -> None:
    for path, text in files.items():
        write(path, text)
    assert read(roots).runtime.value == runtime


def test_in_a_container_a_fabric_manager_that_is_not_seen_may_run(roots: Roots, write: Write) -> None:
    assert read(roots).fabric_manager.value is False
    write(".dockerenv", "")
    assert read(roots).fabric_manager.answer is Answer.UNKNOWN


def config(*capabilities: tuple[int, int, int]) -> bytes:
    """Configuration space of a bridge: capability and control word at an address, linked in order."""
    space = bytearray(4096)
    for number, (address, capability, control) in enumerate(capabilities):
        following = capabilities[number + 1][0] if number + 1 < len(capabilities) else 0
        space[address : address + 4] = (capability | 1 << 16 | following << 20).to_bytes(4, "little")
        space[address + 6 : address + 8] = control.to_bytes(2, "little")
    return bytes(space)


@pytest.mark.parametrize(
    ("space", "on"),
    [
        (config((0x100, 0x1, 0)), ()),
        (config((0x100, 0x1, 0), (0x200, 0xD, 0x1D)), ("0000:00:01.0",)),
        (config((0x100, 0x1, 0), (0x200, 0xD, 0x1C)), ()),
        (config((0x100, 0x1, 0), (0x100, 0x2, 0)), ()),
    ],
)
def test_acs_of_bridges(tmp_path: Path, write: Write, space: bytes, on: tuple[str, ...]) -> None:
    write("sys/bus/pci/devices/0000:00:01.0/class", "0x060400\n")
    (tmp_path / "sys/bus/pci/devices/0000:00:01.0/config").write_bytes(space)
    write("sys/bus/pci/devices/0000:00:02.0/class", "0x030200\n")
    assert pci.acs(tmp_path / "sys").value == on


def test_acs_needs_root(tmp_path: Path, write: Write) -> None:
    write("sys/bus/pci/devices/0000:00:01.0/class", "0x060400\n")
    (tmp_path / "sys/bus/pci/devices/0000:00:01.0/config").write_bytes(bytes(64))
    assert pci.acs(tmp_path / "sys").answer is Answer.NOT_PERMITTED


def test_the_numa_node_of_a_gpu(tmp_path: Path, write: Write) -> None:
    write("sys/bus/pci/devices/0000:18:00.0/numa_node", "1\n")
    write("sys/bus/pci/devices/0000:19:00.0/numa_node", "-1\n")
    assert pci.numa_node("00000000:18:00.0", tmp_path / "sys").value == 1
    assert pci.numa_node("00000000:19:00.0", tmp_path / "sys").answer is Answer.UNSUPPORTED


def test_the_kernel_log_of_this_machine_is_read_without_waiting() -> None:
    assert kernel_log.xids(Path("/dev/kmsg"), FakeClock()).answer in {
        Answer.KNOWN, Answer.NOT_PERMITTED, Answer.UNSUPPORTED,
    }  # fmt: skip


def process(write: Write, pid: int, parent: int, variables: dict[str, str]) -> None:
    write(f"proc/{pid}/stat", f"{pid} (a (b) c) S {parent} 1 1")
    write(f"proc/{pid}/environ", "".join(f"{name}={value}\0" for name, value in variables.items()))


def test_the_environment_is_the_engines_and_that_of_what_it_started(tmp_path: Path, write: Write) -> None:
    process(write, 10, 1, {"VLLM_USE_V1": "1", "HOME": "/root", "VLLM_API_KEY": "k"})
    process(write, 11, 10, {"VLLM_USE_V1": "1", "NCCL_NVLS_ENABLE": "0"})
    process(write, 12, 11, {"CUDA_MODULE_LOADING": "AUTO"})
    process(write, 20, 1, {"NCCL_DEBUG": "INFO"})
    found = environment.of(10, tmp_path / "proc")
    assert found.value == {
        "CUDA_MODULE_LOADING": "AUTO",
        "NCCL_NVLS_ENABLE": "0",
        "VLLM_API_KEY": "(redacted)",
        "VLLM_USE_V1": "1",
    }
    assert "2 descendants" in found.evidence
    assert processes.tree(10, tmp_path / "proc") == {10, 11, 12}


def test_the_environment_of_a_process_that_is_gone_is_unknown(tmp_path: Path) -> None:
    assert environment.of(10, tmp_path / "proc").answer is Answer.UNKNOWN


def test_a_process_that_holds_no_device_is_a_namesake(tmp_path: Path, write: Write) -> None:
    for pid, target in ((10, "/dev/null"), (11, "/dev/nvidia0")):
        write(f"proc/{pid}/comm", "python\n")
        (tmp_path / f"proc/{pid}/fd").mkdir()
        (tmp_path / f"proc/{pid}/fd/3").symlink_to(target)
    assert not processes.describe(10, 1, tmp_path / "proc").here
    assert processes.describe(11, 1, tmp_path / "proc").name == "python"
