"""A host at one moment, as the files of its kernel describe it: one reading per fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_llmperf.model.reading import NOT_READ, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class InfinibandPort:
    """One port of an InfiniBand or RoCE adapter: ``state`` as the kernel writes it ("ACTIVE"), rate in Gbit/s."""

    device: str
    port: int
    state: str
    rate_gbps: float
    errors: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """An error report of the NVIDIA driver: which GPU (PCI bus id as the kernel log has it), number, how long ago."""

    bus_id: str
    code: int
    age_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """One host, and the process that is asked about.

    Attributes:
        governor: of the CPUs' clocks, "performance and powersave" where they differ.
        turbo: whether the CPUs may exceed their base clock.
        load_1m: load average of the last minute.
        cpu_pressure_percent: share of the last 10 s in which something waited for a CPU (PSI ``some``).
        cpu_quota_cores: CPUs that the cgroup may use; 0 for no limit.
        cpu_throttled: periods in which the cgroup used its quota up, since it was made.
        cpu_thermal_throttles: of all cores, since boot.
        cpus: that this process may run on.
        numa_nodes: the CPUs of each node.
        transparent_hugepages: ``always``, ``madvise`` or ``never``.
        memlock_bytes: how much memory the process may lock, -1 for no limit.
        shm_bytes: size of /dev/shm.
        iommu: how many there are.
        acs: PCI bridges on which ACS source validation is on.
        clock_error_ms: the kernel's own bound for how far its clock may be off.
        xids: of the kernel log.
        fabric_manager: whether ``nv-fabricmanager`` runs, as far as processes are seen.
        runtime: container and virtual machine ("docker in kvm", "none").
        environment: variables that steer engines, of the engine's process where there is one; secrets are redacted.
    """

    node: str = ""
    kernel: Reading[str] = NOT_READ
    governor: Reading[str] = NOT_READ
    turbo: Reading[bool] = NOT_READ
    load_1m: Reading[float] = NOT_READ
    cpu_pressure_percent: Reading[float] = NOT_READ
    cpu_quota_cores: Reading[float] = NOT_READ
    cpu_throttled: Reading[int] = NOT_READ
    cpu_thermal_throttles: Reading[int] = NOT_READ
    cpus: Reading[tuple[int, ...]] = NOT_READ
    numa_nodes: Reading[Mapping[int, tuple[int, ...]]] = NOT_READ
    numa_balancing: Reading[bool] = NOT_READ
    transparent_hugepages: Reading[str] = NOT_READ
    memlock_bytes: Reading[int] = NOT_READ
    open_files: Reading[int] = NOT_READ
    shm_bytes: Reading[int] = NOT_READ
    iommu: Reading[int] = NOT_READ
    acs: Reading[tuple[str, ...]] = NOT_READ
    infiniband: Reading[tuple[InfinibandPort, ...]] = NOT_READ
    clock_error_ms: Reading[float] = NOT_READ
    xids: Reading[tuple[Xid, ...]] = NOT_READ
    fabric_manager: Reading[bool] = NOT_READ
    runtime: Reading[str] = NOT_READ
    environment: Reading[Mapping[str, str]] = NOT_READ
