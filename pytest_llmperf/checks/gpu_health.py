"""Health of GPUs: are they all there, cool, and free of errors?"""

from __future__ import annotations

from pytest_llmperf.checks.condition import Seen, Subject, not_applicable, unread, verdict
from pytest_llmperf.model.finding import Status
from pytest_llmperf.model.gpu import EventReason, Gpu
from pytest_llmperf.model.reading import Answer

MARGIN_C = 5
"""Degrees that an idle GPU must be below the temperature at which it slows down."""

XID_AGE_S = 2 * 3600.0

SERIOUS_XIDS = frozenset(
    {48, 56, 57, 58, 62, 63, 64, 65, 68, 69, 73, 74, 79, 80, 81, 92, 94, 95, 119, 120, 154}
)  # fmt: skip
"""Reports of hardware that is or was ill. 13, 31, 43 and 45 are mostly faults of a program."""

THERMAL = EventReason.SW_THERMAL | EventReason.HW_THERMAL | EventReason.HW_POWER_BRAKE

_RECOVERY = {0: "none", 1: "reset the GPU", 2: "reboot the machine", 3: "drain peers", 4: "drain and reset"}


def gpus(subject: Subject) -> Seen:
    """Whether there are as many as the case asks for, and each of them answers."""
    there = subject.snapshot.gpus
    if not subject.gpus and not there:
        return not_applicable("no GPU is asked for")
    expected = f"{max(subject.gpus, 1)} that answer"
    if not there and subject.snapshot.driver.value is None:
        seen = unread(subject.snapshot.driver, expected)
        return Seen(status=Status.FAIL, value=f"none: {seen.value}", expected=expected, evidence=seen.evidence,
                    remedy="load the NVIDIA driver; in a container, start it with GPUs")  # fmt: skip
    lost = [gpu for gpu in there if gpu.name.answer is Answer.FAILED]
    named = f"; {', '.join(map(str, lost))} lost" if lost else ""
    return verdict(
        len(there) - len(lost) >= subject.gpus and not lost,
        f"{len(there)}{named}",
        expected=expected,
        reading=lost[0].name if lost else subject.snapshot.driver,
        remedy="see the kernel log for Xid 79; reboot" if lost else "",
    )


def throttle(gpu: Gpu, subject: Subject) -> Seen:
    """Whether it is slowed down before anything runs. The power cap is no fault at load, and cannot be one at rest."""
    reasons = gpu.event_reasons.value
    if reasons is None:
        return unread(gpu.event_reasons, "not slowed down")
    before = subject.before(gpu)
    twice = before is not None and bool((before.event_reasons.value or 0) & reasons & EventReason.HW_SLOWDOWN)
    bad = bool(reasons & THERMAL) or twice
    return verdict(
        not bad,
        reasons_in_words(reasons),
        fact="slowed down" if bad else "free",
        expected="no thermal slowdown, no power brake",
        reading=gpu.event_reasons,
        remedy="let it cool down; look at airflow, power supply and neighbours",
    )


def reasons_in_words(reasons: int) -> str:
    """The bits by name, unknown ones in hex; "none" for none."""
    known = [reason for reason in EventReason if reasons & reason]
    rest = reasons & ~sum(known)
    words = [(reason.name or "").lower().replace("_", " ") for reason in known]
    return ", ".join([*words, *([hex(rest)] if rest else [])]) or "none"


def thermal_headroom(gpu: Gpu, _: Subject) -> Seen:
    """Degrees to the temperature at which it slows down. Some drivers report a margin of 0 or less that is none."""
    margin, evidence = gpu.margin_c.value, gpu.margin_c
    if margin is None or margin <= 0:
        limit, now = gpu.slowdown_threshold_c.value, gpu.temperature_c.value
        if limit is None or now is None:
            return unread(gpu.temperature_c if limit is not None else gpu.slowdown_threshold_c, f"over {MARGIN_C} K")
        margin, evidence = limit - now, gpu.slowdown_threshold_c
    return verdict(
        margin > MARGIN_C,
        f"{margin} K",
        fact="cool" if margin > MARGIN_C else "hot",
        expected=f"over {MARGIN_C} K",
        reading=evidence,
        remedy="let it cool down, and look at airflow",
    )


def remapped_rows(gpu: Gpu, _: Subject) -> Seen:
    """Rows of memory that wait for a replacement, or cannot be replaced; rows that were replaced are healthy."""
    rows = gpu.remapped_rows.value
    if rows is None:
        return unread(gpu.remapped_rows, "none pending, none failed")
    wrong = [word for word, is_so in (("pending", rows.pending), ("failed", rows.failed)) if is_so]
    return verdict(
        not wrong,
        " and ".join(wrong) or f"{rows.correctable + rows.uncorrectable} replaced",
        fact=" and ".join(wrong) or "healthy",
        expected="none pending, none failed",
        reading=gpu.remapped_rows,
        remedy="replace the GPU" if rows.failed else "reset the GPU: nvidia-smi -i {gpus} -r",
    )


def recovery_action(gpu: Gpu, _: Subject) -> Seen:
    """What the driver itself asks to be done."""
    action = gpu.recovery_action.value
    if action is None:
        return unread(gpu.recovery_action, "none")
    value = _RECOVERY.get(action, f"action {action}")
    return verdict(action == 0, value, expected="none", reading=gpu.recovery_action, remedy=value)


def xid(subject: Subject) -> Seen:
    """Error reports of the driver on these GPUs, in the last two hours of the kernel log."""
    reading, mine = subject.snapshot.host.xids, subject.snapshot.gpus
    if not mine:
        return not_applicable("no GPU")
    if reading.value is None:
        return unread(reading, "none in two hours")
    addresses = {_address(gpu.bus_id.value) for gpu in mine if gpu.bus_id.value}
    recent = [
        each
        for each in reading.value
        if each.age_s <= XID_AGE_S
        and each.code in SERIOUS_XIDS
        and (not addresses or _address(each.bus_id) in addresses)
    ]
    named = sorted({f"Xid {each.code} on {each.bus_id}" for each in recent})
    return verdict(
        not recent,
        ", ".join(named) or "none",
        expected="none in two hours",
        reading=reading,
        remedy="look the number up in NVIDIA's Xid catalogue; most of these need a reset or a reboot",
    )


def _address(bus_id: str) -> str:
    """Domain, bus and device: NVML writes 00000000:00:06.0, the kernel log 0000:00:06."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain or '0', 16):x}:{rest.partition('.')[0]}"


def pcie(gpu: Gpu, subject: Subject) -> Seen:
    """Width and generation of the link. At rest the generation drops by design, so only its largest value counts."""
    width, full = gpu.pcie_width.value, gpu.pcie_width_max.value
    generation, newest = gpu.pcie_generation.value, gpu.pcie_generation_max.value
    if width is None or full is None:
        return unread(gpu.pcie_width if width is None else gpu.pcie_width_max)
    before = subject.before(gpu)
    seen = max(generation or 0, (before.pcie_generation.value or 0) if before else 0)
    at_rest = bool((gpu.event_reasons.value or 0) & EventReason.IDLE)
    slow = newest is not None and generation is not None and seen < newest and not at_rest
    return verdict(
        width >= full and not slow,
        f"generation {seen or '?'} of {newest or '?'}, {width} of {full} lanes",
        fact=f"{width} lanes",
        expected="all lanes, and the newest generation at load",
        reading=gpu.pcie_width,
        remedy="reseat the card; look at the slot and the BIOS",
    )
