"""What must not leave the machine with a recording: names of hosts, people and things, and secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_llmperf.model.gpu import Gpu, Process
from pytest_llmperf.model.reading import Reading
from pytest_llmperf.model.snapshot import Snapshot

SECRET = re.compile(r"(API|ACCESS|AUTH|HF|HUB)[-_]?(TOKEN|KEY)|[-_]TOKEN$|[-_]KEY$|SECRET|PASSW", re.IGNORECASE)
"""Names of variables and flags whose values are nobody's business."""

HIDDEN = "(redacted)"


def redacted_value(name: str, value: str) -> str:
    """The value of a variable, unless its name says that it is a secret."""
    return HIDDEN if SECRET.search(name) else value


def redacted_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables with the values of secrets hidden."""
    return {name: redacted_value(name, value) for name, value in environment.items()}


def redacted(snapshot: Snapshot) -> Snapshot:
    """The snapshot as it may be published.

    UUIDs become ``GPU-0``, ``GPU-1`` by index, in the evidence too; users and the host's name are hidden. Processes
    keep the name of their executable without its folder, and variables keep their values unless they are secrets or
    name a folder in somebody's home.
    """
    names = {gpu.uuid: f"GPU-{gpu.index}" for gpu in snapshot.gpus}
    host = snapshot.host
    return replace(
        snapshot,
        host=replace(host, node=HIDDEN if host.node else "", environment=host.environment.to(_published)),
        gpus=tuple(_gpu(gpu, names) for gpu in snapshot.gpus),
    )


_HOME = re.compile(r"/(home|root|Users)\b[^:,;\s]*")


def _published(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: _HOME.sub(HIDDEN, value) for name, value in redacted_environment(environment).items()}


def _gpu(gpu: Gpu, names: Mapping[str, str]) -> Gpu:
    readings: dict[str, Any] = {
        name: replace(value, evidence=_renamed(value.evidence, names))
        for name in gpu.__slots__
        if isinstance(value := getattr(gpu, name), Reading) and value.evidence
    }
    changed = replace(gpu, **readings)
    return replace(
        changed,
        uuid=names[gpu.uuid],
        processes=changed.processes.to(lambda processes: tuple(_process(process) for process in processes)),
        p2p={
            names.get(peer, HIDDEN): replace(reading, evidence=_renamed(reading.evidence, names))
            for peer, reading in gpu.p2p.items()
        },
    )


def _process(process: Process) -> Process:
    return replace(process, name=process.name.rpartition("/")[2], user=HIDDEN if process.user else "")


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for uuid, name in names.items():
        text = text.replace(uuid, name)
    return text
