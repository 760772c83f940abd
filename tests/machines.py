"""Machines for tests: the recorded H200, and what is derived from it by one named change or more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pytest_llmperf.checks.condition import Subject
from pytest_llmperf.checks.conditions import examine
from pytest_llmperf.checks.profile import profile_of
from pytest_llmperf.model.finding import Finding
from pytest_llmperf.model.gpu import Fabric, Gpu, Memory, PowerProfiles, Vboost
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.model.snapshot import Snapshot

RECORDED = Path(__file__).parent / "data" / "gpu" / "h200.json"


@cache
def h200() -> Snapshot:
    """One H200 in a virtual machine; what nobody asked it (kernel log, CPU pressure) is well."""
    snapshot = Snapshot.from_dict(json.loads(RECORDED.read_text(encoding="utf-8")))
    host = replace(snapshot.host, xids=Reading(()), cpu_pressure_percent=Reading(0.0))
    return replace(snapshot, origin="derived", note="kernel log and CPU pressure added", host=host)


@cache
def board(count: int = 8) -> Snapshot:
    """Several of them on one board with a switch, which that machine had not: links, fabric, peers."""
    base = h200()
    uuids = [f"GPU-{index}" for index in range(count)]
    gpus = tuple(
        replace(
            base.gpus[0],
            index=index,
            uuid=uuid,
            bus_id=Reading(f"00000000:{index + 1:02x}:00.0"),
            nvlinks=Reading((1,) * 18),
            nvlink_errors=Reading(0),
            fabric=Reading(Fabric(state=3, status=0, health_mask=0b10101010, health_summary=1)),
            p2p={other: Reading((0, 0, 0)) for other in uuids if other != uuid},
            numa_node=Reading(0),
        )
        for index, uuid in enumerate(uuids)
    )
    return replace(
        base, note=f"{count} of them, with a switch", gpus=gpus, host=replace(base.host, fabric_manager=Reading(True))
    )


@cache
def b200() -> Snapshot:
    """Eight B200 as documents describe them. Synthetic: nobody has recorded one."""
    snapshot = replace(board(), origin="synthetic", note="made up from documents")
    for index in range(8):
        snapshot = with_gpu(
            snapshot,
            index,
            name="NVIDIA B200",
            part_number=lacking(Answer.UNKNOWN, "not known"),
            compute_capability=(10, 0),
            memory=Memory(total=180 << 30, used=0, reserved=600 << 20),
            power_limit_mw=1_000_000,
            power_limit_enforced_mw=1_000_000,
            power_limit_default_mw=1_000_000,
            power_profiles=PowerProfiles(requested=(), enforced=()),
            power_smoothing=False,
            vboost=Vboost(current=4, maximum=4),
        )
    return with_host(snapshot, environment={"TRTLLM_ENABLE_PDL": "1"})


def with_gpu(snapshot: Snapshot, index: int = 0, **changes: Any) -> Snapshot:
    """The machine with one GPU changed; values are wrapped into readings."""
    gpus = [
        replace(gpu, **{name: value if name == "p2p" else _reading(value) for name, value in changes.items()})
        if gpu.index == index
        else gpu
        for gpu in snapshot.gpus
    ]
    return replace(snapshot, gpus=tuple(gpus))


def with_host(snapshot: Snapshot, **changes: Any) -> Snapshot:
    """The machine with its host changed."""
    return replace(snapshot, host=replace(snapshot.host, **{name: _reading(value) for name, value in changes.items()}))


def unread(snapshot: Snapshot, answer: Answer = Answer.NOT_PERMITTED) -> Snapshot:
    """The machine of which nothing can be read."""
    said: Reading[Any] = lacking(answer, "a call: a code")

    def all_of(thing: Any) -> dict[str, Any]:
        return {name: said for name in thing.__slots__ if isinstance(getattr(thing, name), Reading)}

    gpus = tuple(replace(gpu, **all_of(gpu), p2p=dict.fromkeys(gpu.p2p, said)) for gpu in snapshot.gpus)
    host = replace(snapshot.host, **all_of(snapshot.host))
    return replace(snapshot, gpus=gpus, host=host, driver=said, cuda=said, confidential_compute=said)


def subject(snapshot: Snapshot, **changes: Any) -> Subject:
    return Subject(**{"snapshot": snapshot, "profile": profile_of(snapshot), "gpus": len(snapshot.gpus), **changes})


def look(snapshot: Snapshot, **changes: Any) -> Mapping[str, Finding]:
    """Every finding of a machine by name."""
    return {finding.check: finding for finding in examine(subject(snapshot, **changes))}


def _reading(value: Any) -> Any:
    return value if isinstance(value, Reading) else Reading(value, evidence="a call")


def gpu_of(snapshot: Snapshot, index: int = 0) -> Gpu:
    return next(gpu for gpu in snapshot.gpus if gpu.index == index)
