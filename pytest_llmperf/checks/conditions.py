"""The table of checks of a machine: name, how much it matters where a suite does not say, and how it is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches

from pytest_llmperf.checks import gpu_health, gpu_links, gpu_settings, gpu_use, host_conditions, host_cpu
from pytest_llmperf.checks.condition import Condition, Subject, between_gpus, each_gpu, finding
from pytest_llmperf.model.finding import Finding, Status

VARIABLE = "env."
"""A check whose name begins so asks for the value of one variable of the engine's environment."""

GPU_CONDITIONS = (
    Condition(name="gpus", policy="require", look=gpu_health.gpus),
    Condition(name="gpu_identity", policy="compare", look=each_gpu(gpu_settings.gpu_identity)),
    Condition(name="driver", policy="record", look=gpu_settings.driver),
    Condition(name="persistence_mode", policy="require", look=each_gpu(gpu_settings.persistence_mode)),
    Condition(name="vboost", policy="compare", look=each_gpu(gpu_settings.vboost)),
    Condition(name="pdl", policy="compare", look=each_gpu(gpu_settings.pdl)),
    Condition(name="clock_limits", policy="compare", look=each_gpu(gpu_settings.clock_limits)),
    Condition(name="power_limit", policy="require", look=each_gpu(gpu_settings.power_limit)),
    Condition(name="power_profile", policy="compare", look=each_gpu(gpu_settings.power_profile)),
    Condition(name="power_smoothing", policy="compare", look=each_gpu(gpu_settings.power_smoothing)),
    Condition(name="ecc", policy="compare", look=each_gpu(gpu_settings.ecc)),
    Condition(name="mig", policy="require", look=each_gpu(gpu_settings.mig)),
    Condition(name="compute_mode", policy="warn", look=each_gpu(gpu_settings.compute_mode)),
    Condition(name="confidential_compute", policy="compare", look=gpu_settings.confidential_compute),
    Condition(name="throttle", policy="require", look=each_gpu(gpu_health.throttle)),
    Condition(name="thermal_headroom", policy="warn", look=each_gpu(gpu_health.thermal_headroom)),
    Condition(name="remapped_rows", policy="require", look=each_gpu(gpu_health.remapped_rows)),
    Condition(name="recovery_action", policy="require", look=each_gpu(gpu_health.recovery_action)),
    Condition(name="xid", policy="require", look=gpu_health.xid),
    Condition(name="pcie", policy="warn", look=each_gpu(gpu_health.pcie)),
    Condition(name="foreign_processes", policy="require", look=gpu_use.foreign_processes),
    Condition(name="memory_in_use", policy="require", look=each_gpu(gpu_use.memory_in_use)),
    Condition(name="idle_utilisation", policy="require", look=each_gpu(gpu_use.idle_utilisation)),
    Condition(name="rank_memory", policy="warn", look=gpu_use.rank_memory),
    Condition(name="same_gpus", policy="require", look=between_gpus(gpu_links.same_gpus)),
    Condition(name="nvlink", policy="require", look=between_gpus(gpu_links.nvlink)),
    Condition(name="fabric", policy="require", look=between_gpus(gpu_links.fabric)),
    Condition(name="fabric_manager", policy="require", look=between_gpus(gpu_links.fabric_manager)),
    Condition(name="p2p", policy="require", look=between_gpus(gpu_links.p2p)),
)

HOST_CONDITIONS = (
    Condition(name="governor", policy="warn", look=host_cpu.governor),
    Condition(name="turbo", policy="compare", look=host_cpu.turbo),
    Condition(name="cpu_pressure", policy="require", look=host_cpu.cpu_pressure),
    Condition(name="cpu_quota", policy="warn", look=host_cpu.cpu_quota),
    Condition(name="cpu_thermal", policy="warn", look=host_cpu.cpu_thermal),
    Condition(name="numa", policy="warn", look=host_cpu.numa),
    Condition(name="numa_balancing", policy="warn", look=host_cpu.numa_balancing),
    Condition(name="transparent_hugepages", policy="compare", look=host_conditions.transparent_hugepages),
    Condition(name="locked_memory", policy="warn", look=host_conditions.locked_memory),
    Condition(name="open_files", policy="warn", look=host_conditions.open_files),
    Condition(name="shared_memory", policy="warn", look=host_conditions.shared_memory),
    Condition(name="acs", policy="warn", look=host_conditions.acs),
    Condition(name="infiniband", policy="require", look=host_conditions.infiniband),
    Condition(name="infiniband_rate", policy="compare", look=host_conditions.infiniband_rate),
    Condition(name="clock", policy="warn", look=host_conditions.clock),
    Condition(name="runtime", policy="compare", look=host_conditions.runtime),
    Condition(name="environment", policy="record", look=host_conditions.environment),
    Condition(name="harmful_environment", policy="warn", look=host_conditions.harmful_environment),
)

CONDITIONS: Mapping[str, Condition] = {each.name: each for each in (*GPU_CONDITIONS, *HOST_CONDITIONS)}


def examine(subject: Subject) -> tuple[Finding, ...]:
    """Every check of this machine, in the order of the table; variables that a suite asks for come last.

    Where neither the case nor the machine has GPUs, their checks are no part of the answer.
    """
    subject = _in_order(subject)
    return tuple(found for each in _asked(subject) if (found := finding(each, subject)) is not None)


def facts(subject: Subject) -> dict[str, str]:
    """What a baseline keeps of this machine, by check: what ``compare`` compares with, of all that is known."""
    subject = _in_order(subject)
    looks = {each.name: each.look(subject) for each in _asked(subject) if _policy(each, subject) == "compare"}
    return {name: seen.fact for name, seen in looks.items() if seen.fact and seen.status in {Status.PASS, Status.FAIL}}


def unknown(name: str) -> str:
    """Why there is no check of this name, with the nearest ones; "" where there is one."""
    if name in CONDITIONS or (name.startswith(VARIABLE) and len(name) > len(VARIABLE)):
        return ""
    close = get_close_matches(name, CONDITIONS, n=1)
    return f"no check is called {name!r}" + (
        f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(CONDITIONS)}"
    )


def _in_order(subject: Subject) -> Subject:
    """With the GPUs by number, so that nothing depends on the order in which they were read."""
    gpus = sorted(subject.snapshot.gpus, key=lambda gpu: (gpu.index, gpu.uuid))
    return replace(subject, snapshot=replace(subject.snapshot, gpus=tuple(gpus)))


def _asked(subject: Subject) -> Iterator[Condition]:
    if subject.gpus or subject.snapshot.gpus:
        yield from GPU_CONDITIONS
    yield from HOST_CONDITIONS
    for name in sorted(subject.expectations):
        if name.startswith(VARIABLE):
            yield _variable(name.removeprefix(VARIABLE))


def _variable(name: str) -> Condition:
    return Condition(
        name=f"{VARIABLE}{name}",
        policy="require",
        look=lambda subject: host_conditions.variable(name, subject.snapshot.host),
    )


def _policy(condition: Condition, subject: Subject) -> str:
    expectation = subject.expectations.get(condition.name)
    stated = None if expectation is None else expectation.policy
    return stated or subject.profile.policies.get(condition.name, condition.policy)
