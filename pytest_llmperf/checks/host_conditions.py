"""Conditions of the host: memory policies, limits, network, and the engine's environment."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_llmperf.checks.condition import Seen, Subject, not_applicable, unread, verdict
from pytest_llmperf.model.finding import Status
from pytest_llmperf.model.host_facts import HostFacts, InfinibandPort

SHM_BYTES = 1 << 30
OPEN_FILES = 4096
CLOCK_ERROR_MS = 10.0

HARMFUL: Mapping[str, frozenset[str]] = {
    "CUDA_LAUNCH_BLOCKING": frozenset({"1"}),
    "NCCL_DEBUG": frozenset({"INFO", "TRACE"}),
    "NCCL_P2P_DISABLE": frozenset({"1"}),
    "NCCL_SHM_DISABLE": frozenset({"1"}),
}
"""Values that cost speed whatever the engine does."""


def transparent_hugepages(subject: Subject) -> Seen:
    """Which memory the kernel backs with huge pages by itself."""
    reading = subject.snapshot.host.transparent_hugepages
    if reading.value is None:
        return unread(reading)
    return verdict(good=True, value=reading.value, expected="as in the baseline", reading=reading)


def locked_memory(subject: Subject) -> Seen:
    """How much memory may be locked; RDMA registers all of it."""
    reading = subject.snapshot.host.memlock_bytes
    if not subject.snapshot.host.infiniband.value:
        return not_applicable("no RDMA")
    if reading.value is None:
        return unread(reading, "no limit")
    return verdict(
        reading.value == -1,
        "no limit" if reading.value == -1 else f"{reading.value / 2**20:.0f} MiB",
        expected="no limit",
        reading=reading,
        remedy="ulimit -l unlimited; docker run --ulimit memlock=-1",
    )


def open_files(subject: Subject) -> Seen:
    """How many connections the client may hold at once."""
    reading = subject.snapshot.host.open_files
    if reading.value is None:
        return unread(reading)
    return verdict(
        reading.value == -1 or reading.value >= OPEN_FILES,
        "no limit" if reading.value == -1 else str(reading.value),
        expected=f"at least {OPEN_FILES}",
        reading=reading,
        remedy="ulimit -n 65536",
    )


def shared_memory(subject: Subject) -> Seen:
    """Size of /dev/shm, through which the processes of one engine exchange tensors; Docker's default is 64 MiB."""
    if subject.gpus < 2:  # noqa: PLR2004
        return not_applicable("one GPU at most")
    reading = subject.snapshot.host.shm_bytes
    if reading.value is None:
        return unread(reading, "at least 1 GiB")
    return verdict(
        reading.value >= SHM_BYTES,
        f"{reading.value / 2**20:.0f} MiB",
        fact="enough" if reading.value >= SHM_BYTES else "too small",
        expected="at least 1 GiB",
        reading=reading,
        remedy="docker run --shm-size 16g, or --ipc=host",
    )


def acs(subject: Subject) -> Seen:
    """ACS source validation sends traffic between GPUs up to the CPU. A virtual machine may need it."""
    if subject.gpus < 2:  # noqa: PLR2004
        return not_applicable("one GPU at most")
    reading = subject.snapshot.host.acs
    if reading.value is None:
        return unread(reading, "off")
    return verdict(
        not reading.value,
        f"on at {', '.join(reading.value)}" if reading.value else "off",
        expected="off",
        reading=reading,
        remedy="see NCCL's troubleshooting, GPU Direct; in a virtual machine leave it",
    )


def infiniband(subject: Subject) -> Seen:
    """Whether every port is up, and counts no errors."""
    if subject.nodes < 2:  # noqa: PLR2004
        return not_applicable("one machine")
    reading = subject.snapshot.host.infiniband
    if reading.value is None:
        return unread(reading, "all ports active")
    down = [port for port in reading.value if port.state != "ACTIVE"]
    errors = _new_errors(subject, reading.value)
    complaints = [f"{port.device}/{port.port} is {port.state}" for port in down]
    complaints += [f"{errors} new errors"] if errors else []
    return verdict(
        bool(reading.value) and not complaints,
        "; ".join(complaints) or f"{len(reading.value)} ports active",
        fact="down" if complaints else "active",
        expected="all ports active, without new errors",
        reading=reading,
        remedy="ibstat; look at cables and the subnet manager",
    )


def infiniband_rate(subject: Subject) -> Seen:
    """How fast the ports are together, in the order of adapters."""
    if subject.nodes < 2:  # noqa: PLR2004
        return not_applicable("one machine")
    reading = subject.snapshot.host.infiniband
    if reading.value is None:
        return unread(reading)
    rates = " + ".join(f"{port.rate_gbps:g}" for port in reading.value) or "0"
    return verdict(good=True, value=f"{rates} Gbit/s", expected="as in the baseline", reading=reading)


def _new_errors(subject: Subject, ports: tuple[InfinibandPort, ...]) -> int:
    earlier = () if subject.earlier is None else subject.earlier.host.infiniband.value or ()
    before = {(port.device, port.port): port.errors or 0 for port in earlier}
    return sum(max((port.errors or 0) - before.get((port.device, port.port), port.errors or 0), 0) for port in ports)


def clock(subject: Subject) -> Seen:
    """How far the dates of several machines may be apart. Within one, only the monotonic clock is used."""
    if subject.nodes < 2:  # noqa: PLR2004
        return not_applicable("one machine")
    reading = subject.snapshot.host.clock_error_ms
    if reading.value is None:
        return unread(reading, f"at most {CLOCK_ERROR_MS:g} ms")
    return verdict(
        reading.value <= CLOCK_ERROR_MS,
        f"off by up to {reading.value:.1f} ms",
        expected=f"at most {CLOCK_ERROR_MS:g} ms",
        reading=reading,
        remedy="start chrony or another NTP client",
    )


def runtime(subject: Subject) -> Seen:
    """What stands between us and the hardware."""
    reading = subject.snapshot.host.runtime
    if reading.value is None:
        return unread(reading)
    return verdict(good=True, value=reading.value, expected="as in the baseline", reading=reading)


def environment(subject: Subject) -> Seen:
    """The variables that steer engines, as those of the baseline were."""
    reading = subject.snapshot.host.environment
    if reading.value is None:
        return unread(reading)
    words = " ".join(f"{name}={value}" for name, value in sorted(reading.value.items()))
    return verdict(good=True, value=words or "none set", expected="as in the baseline", reading=reading)


def harmful_environment(subject: Subject) -> Seen:
    """Variables that are left over from debugging."""
    reading = subject.snapshot.host.environment
    if reading.value is None:
        return unread(reading, "none")
    found = [
        f"{name}={reading.value[name]}" for name, bad in HARMFUL.items() if reading.value.get(name, "").upper() in bad
    ]
    return verdict(
        not found,
        ", ".join(found) or "none",
        expected="none",
        reading=reading,
        remedy="unset them for the engine, or say in the suite why this site needs them",
    )


def variable(name: str, host: HostFacts) -> Seen:
    """One variable of the engine's environment, for a suite that asks for a value of it."""
    if host.environment.value is None:
        return unread(host.environment)
    value = host.environment.value.get(name)
    return Seen(
        status=Status.PASS,
        value="unset" if value is None else value,
        fact="unset" if value is None else value,
        evidence=host.environment.evidence,
        remedy=f"export {name}=VALUE for the engine",
    )
