"""Conditions of the host's CPUs: their clocks, who else uses them, and how near they are to the GPUs."""

from __future__ import annotations

from pytest_llmperf.checks.condition import Seen, Subject, not_applicable, unread, verdict
from pytest_llmperf.model.reading import Reading

PRESSURE_PERCENT = 10.0


def governor(subject: Subject) -> Seen:
    """How the kernel chooses the CPUs' clocks."""
    reading = subject.snapshot.host.governor
    if reading.value is None:
        return unread(reading, "performance")
    return verdict(
        reading.value == "performance",
        reading.value,
        expected="performance",
        reading=reading,
        remedy="cpupower frequency-set -g performance",
    )


def turbo(subject: Subject) -> Seen:
    """Whether CPUs may exceed their base clock: on for serving; what matters is that it is as it was."""
    reading = subject.snapshot.host.turbo
    if reading.value is None:
        return unread(reading)
    return verdict(good=True, value="on" if reading.value else "off", expected="as in the baseline", reading=reading)


def cpu_pressure(subject: Subject) -> Seen:
    """Share of the last ten seconds in which something waited for a CPU."""
    reading = subject.snapshot.host.cpu_pressure_percent
    if reading.value is None:
        return unread(reading, f"at most {PRESSURE_PERCENT:g} %")
    good = reading.value <= PRESSURE_PERCENT
    return verdict(
        good,
        f"{reading.value:.1f} % of the time something waited for a CPU",
        fact="free" if good else "short of CPUs",
        expected=f"at most {PRESSURE_PERCENT:g} %",
        reading=reading,
        remedy="find what else is running",
    )


def cpu_quota(subject: Subject) -> Seen:
    """Whether the cgroup used its CPU quota up since the earlier look; one that is never reached is no fault."""
    now, quota = subject.snapshot.host.cpu_throttled, subject.snapshot.host.cpu_quota_cores
    if quota.value is None:
        return unread(quota, "never used up")
    limit = f"{quota.value:g} CPUs" if quota.value else "no limit"
    grown = _grown(subject, "cpu_throttled")
    return verdict(
        not grown,
        f"{limit}, used up in {grown} periods" if grown else limit,
        fact=limit,
        expected="never used up",
        reading=now if grown else quota,
        remedy="give the container more CPUs, or no limit",
    )


def cpu_thermal(subject: Subject) -> Seen:
    """Whether CPUs were slowed down by heat since the earlier look."""
    reading = subject.snapshot.host.cpu_thermal_throttles
    if reading.value is None:
        return unread(reading, "none")
    if subject.earlier is None:
        return not_applicable("known after a run")
    grown = _grown(subject, "cpu_thermal_throttles")
    return verdict(
        not grown, f"{grown} times", expected="none", reading=reading, remedy="look at the cooling of the machine"
    )


def _grown(subject: Subject, name: str) -> int:
    if subject.earlier is None:
        return 0
    now: Reading[int] = getattr(subject.snapshot.host, name)
    before: Reading[int] = getattr(subject.earlier.host, name)
    return max((now.value or 0) - before.value, 0) if before.value is not None else 0


def numa(subject: Subject) -> Seen:
    """Whether we may run near the GPUs. What counts for the engine is where it binds itself."""
    host, gpus = subject.snapshot.host, subject.snapshot.gpus
    if not gpus:
        return not_applicable("no GPU")
    nodes = {gpu.numa_node.value for gpu in gpus if gpu.numa_node.value is not None}
    if not nodes:
        return unread(gpus[0].numa_node)
    if host.numa_nodes.value is None or host.cpus.value is None:
        return unread(host.numa_nodes if host.numa_nodes.value is None else host.cpus)
    mine = set(host.cpus.value)
    far = sorted(node for node in nodes if not mine & set(host.numa_nodes.value.get(node, ())))
    return verdict(
        not far,
        f"no CPU of node {', '.join(map(str, far))} may be used" if far else "CPUs near the GPUs",
        fact="far" if far else "near",
        expected="CPUs of each GPU's node",
        reading=host.numa_nodes,
        remedy="start it with CPUs of that node: numactl, taskset, or the container's cpuset",
    )


def numa_balancing(subject: Subject) -> Seen:
    """Whether the kernel moves memory between nodes while we measure."""
    reading = subject.snapshot.host.numa_balancing
    if reading.value is None:
        return unread(reading, "off")
    single = len(subject.snapshot.host.numa_nodes.value or {}) == 1
    return verdict(
        not reading.value or single,
        ("on" if reading.value else "off") + ", one node" * single,
        fact="on" if reading.value else "off",
        expected="off",
        reading=reading,
        remedy="sysctl kernel.numa_balancing=0",
    )
