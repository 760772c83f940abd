"""Between GPUs: are they alike, and can each reach the others? Of no concern to a case with one."""

from __future__ import annotations

from pytest_llmperf.checks.condition import Seen, Subject, each_gpu, not_applicable, unread, verdict
from pytest_llmperf.model.finding import Status
from pytest_llmperf.model.gpu import Fabric, Gpu
from pytest_llmperf.model.reading import NOT_READ

ACTIVE = 1
COMPLETED, HEALTHY = 3, (0, 1)
"""Of the fabric: the state, and the summaries that are no complaint (not said, healthy)."""

_STATES = {0: "not supported", 1: "not started", 2: "in progress", 3: "completed"}

_MASK_BAD = {0: "degraded bandwidth", 2: "route recovery", 4: "unhealthy route", 6: "access timeout recovery"}
"""Topics of the health mask by their lowest bit; each has two bits, and 1 says that it is so."""

_P2P = ("reading", "writing", "NVLink")

_FABRIC_REMEDY = "systemctl restart nvidia-fabricmanager, and reset the GPUs where it was restarted before"


def same_gpus(subject: Subject) -> Seen:
    """Whether all GPUs of the case are one product, with one power limit: the slowest sets the pace."""
    for gpu in subject.snapshot.gpus:
        if gpu.name.value is None:
            return unread(gpu.name, "one kind")
    kinds = sorted({_kind(gpu) for gpu in subject.snapshot.gpus})
    if not kinds:
        return not_applicable("no GPU")
    return verdict(
        len(kinds) == 1,
        " and ".join(kinds),
        expected="one kind",
        reading=subject.snapshot.gpus[0].name,
        remedy="choose GPUs of one kind",
    )


def _kind(gpu: Gpu) -> str:
    limit = gpu.power_limit_enforced_mw.value
    parts = [gpu.name.value, gpu.part_number.value, None if limit is None else f"{limit / 1000:.0f} W"]
    return " ".join(part for part in parts if part)


def _nvlink(gpu: Gpu, subject: Subject) -> Seen:
    states = gpu.nvlinks.value
    wanted = subject.profile.nvlinks
    if states is None:
        return unread(gpu.nvlinks, f"{wanted} links" if wanted else "all links active")
    active = sum(state == ACTIVE for state in states)
    grown = _grown(gpu, subject)
    return verdict(
        active == len(states) and active >= (wanted or 1) and not grown,
        f"{active} of {wanted or len(states)} links active" + (f", {grown} new errors" if grown else ""),
        fact=f"{active} links",
        expected="all active, without new errors",
        reading=gpu.nvlinks,
        remedy="nvidia-smi nvlink -s -i {gpus}; restart the fabric manager, reset the GPU",
    )


nvlink = each_gpu(_nvlink)


def _grown(gpu: Gpu, subject: Subject) -> int:
    before, now = subject.before(gpu), gpu.nvlink_errors.value
    if before is None or before.nvlink_errors.value is None or now is None:
        return 0
    return max(now - before.nvlink_errors.value, 0)


def _fabric(gpu: Gpu, _: Subject) -> Seen:
    fabric = gpu.fabric.value
    if fabric is None:
        return unread(gpu.fabric, "registered and healthy")
    complaints = _complaints(fabric)
    return verdict(
        not complaints,
        "; ".join(complaints) or "registered and healthy",
        expected="registered and healthy",
        reading=gpu.fabric,
        remedy=_FABRIC_REMEDY,
    )


fabric = each_gpu(_fabric)
"""Links can all be active while this is not: then no GPU reaches another one."""


def _complaints(fabric: Fabric) -> list[str]:
    complaints = []
    if fabric.state != COMPLETED:
        complaints.append(f"registration {_STATES.get(fabric.state, fabric.state)}")
    if fabric.status:
        complaints.append(f"status {fabric.status}{' (insufficient resources)' * (fabric.status == 23)}")  # noqa: PLR2004
    if fabric.health_summary not in {None, *HEALTHY}:
        complaints.append({2: "unhealthy", 3: "limited capacity"}.get(fabric.health_summary or 0, "unhealthy"))
    complaints += [word for bit, word in _MASK_BAD.items() if fabric.health_mask >> bit & 3 == 1]
    return complaints


def fabric_manager(subject: Subject) -> Seen:
    """Whether the manager lives: when it dies, the GPUs keep saying that they are registered."""
    if all(gpu.fabric.value is None for gpu in subject.snapshot.gpus):
        return not_applicable("no fabric")
    running = subject.snapshot.host.fabric_manager
    if running.value is None:
        return unread(running, "running")
    value = "running" if running.value else "not running"
    return verdict(running.value, value, expected="running", reading=running, remedy=_FABRIC_REMEDY)


def _p2p(gpu: Gpu, subject: Subject) -> Seen:
    others = [other for other in subject.snapshot.gpus if other.uuid != gpu.uuid]
    if not others:
        return Seen(status=Status.NOT_APPLICABLE, value="no other GPU")
    broken: list[str] = []
    for other in others:
        reading = gpu.p2p.get(other.uuid, NOT_READ)
        if reading.value is None:
            return unread(reading, "all pairs")
        wrong = [word for word, status in zip(_P2P, reading.value, strict=True) if status]
        broken += [f"to GPU {other.index} no {' and no '.join(wrong)}"] if wrong else []
    return verdict(
        not broken,
        "; ".join(broken) or "to all others",
        expected="all pairs: reading, writing, NVLink",
        reading=gpu.p2p.get(others[0].uuid, NOT_READ),
        remedy="nvidia-smi topo -p2p r; look at ACS, IOMMU and the driver",
    )


p2p = each_gpu(_p2p)
