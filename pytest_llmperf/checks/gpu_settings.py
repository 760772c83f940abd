"""Settings of GPUs: what somebody chose, and what a result depends on."""

from __future__ import annotations

from pytest_llmperf.checks.condition import Seen, Subject, not_applicable, unread, verdict
from pytest_llmperf.model.finding import Status
from pytest_llmperf.model.gpu import EventReason, Gpu

PROHIBITED, EXCLUSIVE = 2, (1, 3)
"""Compute modes."""

PDL_CAPABILITY = (9, 0)
"""The first that has programmatic dependent launch."""

POWER_PROFILES = {0: "MAX_P", 1: "MAX_Q", 2: "COMPUTE", 6: "LLM_INFERENCE", 19: "LOW_LATENCY_INFERENCE"}


def persistence_mode(gpu: Gpu, _: Subject) -> Seen:
    """On, or each client that comes first pays for an initialisation, and settings are lost after the last one."""
    if gpu.persistence.value is None:
        return unread(gpu.persistence, "on")
    return verdict(
        gpu.persistence.value,
        "on" if gpu.persistence.value else "off",
        expected="on",
        reading=gpu.persistence,
        remedy="start nvidia-persistenced, or: nvidia-smi -i {gpus} -pm 1",
    )


def vboost(gpu: Gpu, _: Subject) -> Seen:
    """The boost slider. No value is right in itself: vendors advise 0, 1 and the largest, each for other work."""
    slider = gpu.vboost.value
    if slider is None:
        return unread(gpu.vboost)
    return verdict(
        good=True,
        value=f"{slider.current} of {slider.maximum}",
        fact=str(slider.current),
        expected="as in the baseline",
        reading=gpu.vboost,
        remedy="nvidia-smi boost-slider -i {gpus} --vboost VALUE",
    )


def pdl(gpu: Gpu, subject: Subject) -> Seen:
    """Programmatic dependent launch, by the engine's environment; unset means the engine's choice."""
    capability, environment = gpu.compute_capability.value, subject.snapshot.host.environment
    if capability is None:
        return unread(gpu.compute_capability)
    if environment.value is None:
        return unread(environment)
    said = environment.value.get("TRTLLM_ENABLE_PDL")
    if capability < PDL_CAPABILITY:
        return Seen(
            status=Status.NOT_APPLICABLE,
            value=f"compute capability {capability[0]}.{capability[1]} has none",
            remedy="TensorRT-LLM 1.2 switches it on all the same: export TRTLLM_ENABLE_PDL=0",
        )
    value = {"1": "on", "0": "off", None: "the engine's choice"}.get(said, f"TRTLLM_ENABLE_PDL={said}")
    return verdict(
        said != "0",
        value,
        expected="not off",
        reading=environment,
        remedy="export TRTLLM_ENABLE_PDL=1 for the engine",
    )


def clock_limits(gpu: Gpu, _: Subject) -> Seen:
    """Whether clocks are held down by application clocks or a lock. A lock has no getter: its effect is what shows."""
    reasons, clocks, most = gpu.event_reasons, gpu.application_clocks_mhz.value, gpu.sm_clock_max_mhz.value
    if reasons.value is None:
        return unread(reasons, "none")
    below = clocks is not None and most is not None and clocks[0] < most
    limited = bool(reasons.value & EventReason.CLOCK_SETTING) or below
    value = f"application clock {clocks[0]} of {most} MHz" if below and clocks else "limited" if limited else "none"
    return verdict(
        not limited,
        value,
        expected="none",
        reading=gpu.application_clocks_mhz if below else reasons,
        remedy="nvidia-smi -i {gpus} -rgc; nvidia-smi -i {gpus} -rmc; nvidia-smi -i {gpus} -rac",
    )


def power_limit(gpu: Gpu, _: Subject) -> Seen:
    """What the GPU keeps to, whoever set it: driver, firmware or the machine's controller; the smallest wins."""
    enforced, default = gpu.power_limit_enforced_mw, gpu.power_limit_default_mw
    if enforced.value is None or default.value is None:
        return unread(enforced if enforced.value is None else default, "the default")
    watts, usual = enforced.value / 1000, default.value / 1000
    return verdict(
        enforced.value >= default.value,
        f"{watts:.0f} W, {watts / usual:.0%} of the default" if usual else f"{watts:.0f} W",
        fact=f"{watts:.0f} W",
        expected=f"at least the default, {usual:.0f} W",
        reading=enforced,
        remedy=f"nvidia-smi -i {{gpus}} -pl {usual:.0f}; if it does not hold, the machine's controller limits it",
    )


def power_profile(gpu: Gpu, _: Subject) -> Seen:
    """Workload power profiles in force."""
    profiles = gpu.power_profiles.value
    if profiles is None:
        return unread(gpu.power_profiles, "none")
    named = ", ".join(POWER_PROFILES.get(number, str(number)) for number in profiles.enforced)
    return verdict(
        not profiles.enforced,
        named or "none",
        expected="none",
        reading=gpu.power_profiles,
        remedy="nvidia-smi power-profiles -i {gpus} --clear",
    )


def power_smoothing(gpu: Gpu, _: Subject) -> Seen:
    """Ramps of power that are limited distort short runs."""
    if gpu.power_smoothing.value is None:
        return unread(gpu.power_smoothing, "off")
    return verdict(
        not gpu.power_smoothing.value,
        "on" if gpu.power_smoothing.value else "off",
        expected="off",
        reading=gpu.power_smoothing,
        remedy="nvidia-smi power-smoothing -i {gpus} -s 0",
    )


def ecc(gpu: Gpu, _: Subject) -> Seen:
    """Error correction: what holds, and whether the next reset changes it."""
    mode = gpu.ecc.value
    if mode is None:
        return unread(gpu.ecc)
    now = "on" if mode.current else "off"
    pending = mode.current != mode.pending
    return verdict(
        not pending,
        f"{now}, {'off' if mode.current else 'on'} after a reset" if pending else now,
        expected="the same after a reset",
        reading=gpu.ecc,
        remedy="decide for one, and reset the GPU",
    )


def mig(gpu: Gpu, _: Subject) -> Seen:
    """A GPU that is divided is another GPU. Inside an instance the driver refuses to say, which says it."""
    mode = gpu.mig.value
    if mode is None:
        seen = unread(gpu.mig, "off")
        return seen if seen.status is not Status.UNSUPPORTED else not_applicable("cannot be divided")
    return verdict(
        not mode.current,
        "on" if mode.current else "off",
        expected="off",
        reading=gpu.mig,
        remedy="nvidia-smi -i {gpus} -mig 0, when nobody uses its instances",
    )


def compute_mode(gpu: Gpu, _: Subject) -> Seen:
    """Whether processes may use the GPU at all, and besides each other."""
    mode = gpu.compute_mode.value
    if mode is None:
        return unread(gpu.compute_mode, "default")
    taken = mode in EXCLUSIVE and bool(gpu.processes.value)
    return verdict(
        mode != PROHIBITED and not taken,
        {0: "default", 1: "exclusive", 2: "prohibited", 3: "exclusive"}.get(mode, str(mode)) + " and in use" * taken,
        expected="default, or exclusive and free",
        reading=gpu.compute_mode,
        remedy="nvidia-smi -i {gpus} -c 0",
    )


def confidential_compute(subject: Subject) -> Seen:
    """Encryption between CPU and GPU costs up to a factor of three, and no setting of the engine shows it."""
    reading = subject.snapshot.confidential_compute
    if not subject.snapshot.gpus:
        return not_applicable("no GPU")
    if reading.value is None:
        return unread(reading)
    value = "on" if reading.value else "off"
    return verdict(good=True, value=value, expected="as in the baseline", reading=reading)


def gpu_identity(gpu: Gpu, _: Subject) -> Seen:
    """What it is: products of one name come as several parts."""
    if gpu.name.value is None:
        return unread(gpu.name)
    memory = gpu.memory.value
    parts = [gpu.name.value, gpu.part_number.value, None if memory is None else f"{memory.total / 2**30:.0f} GiB"]
    value = ", ".join(part for part in parts if part)
    return verdict(good=True, value=value, expected="as in the baseline", reading=gpu.name)


def driver(subject: Subject) -> Seen:
    """Driver, the CUDA that it runs, and the firmware of the GPUs."""
    version, cuda = subject.snapshot.driver, subject.snapshot.cuda.value
    if not subject.snapshot.gpus:
        return not_applicable("no GPU")
    if version.value is None:
        return unread(version)
    firmware = sorted({gpu.vbios.value for gpu in subject.snapshot.gpus if gpu.vbios.value})
    parts = [version.value]
    parts += [] if cuda is None else [f"CUDA {cuda // 1000}.{cuda % 1000 // 10}"]
    parts += [f"VBIOS {' and '.join(firmware)}"] if firmware else []
    return verdict(good=True, value=", ".join(parts), expected="", reading=version)
