"""The hardware class: what must be equal for two results to be of one kind of machine, and where two differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from pytest_llmperf.model.gpu import Gpu
from pytest_llmperf.model.reading import Answer
from pytest_llmperf.model.snapshot import Snapshot


def hardware_class(snapshot: Snapshot) -> dict[str, str]:
    """Facts of the machine's GPUs by name; what is not known is left out, and a machine without GPUs has none.

    Where they differ among each other, each kind is counted: ``7x 700 W, 1x 500 W``.
    """
    if not snapshot.gpus:
        return {}
    facts = {"gpu_count": str(len(snapshot.gpus))}
    for name, fact in _FACTS.items():
        values = [value for gpu in snapshot.gpus if (value := fact(gpu)) is not None]
        if len(values) == len(snapshot.gpus):
            facts[name] = _counted(values)
    return facts


def differences(reference: Mapping[str, str], candidate: Mapping[str, str]) -> list[str]:
    """Why results of two machines are not of one class: a text for each fact that the reference states otherwise."""
    return [
        f"{name.replace('_', ' ')}: baseline {wanted}, here {candidate.get(name, 'unknown')}"
        for name, wanted in reference.items()
        if candidate.get(name, "unknown") != wanted
    ]


def _counted(values: list[str]) -> str:
    kinds = Counter(values)
    if len(kinds) == 1:
        return values[0]
    return ", ".join(
        f"{count}x {value}" for value, count in sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0]))
    )


def _memory(gpu: Gpu) -> str | None:
    return None if gpu.memory.value is None else f"{gpu.memory.value.total / 2**30:.0f} GiB"


def _power(gpu: Gpu) -> str | None:
    return None if gpu.power_limit_enforced_mw.value is None else f"{gpu.power_limit_enforced_mw.value / 1000:.0f} W"


def _interconnect(gpu: Gpu) -> str | None:
    if gpu.nvlinks.value is None:
        return "no NVLink" if gpu.nvlinks.answer is Answer.UNSUPPORTED else None
    return f"{len(gpu.nvlinks.value)} NVLinks"


_FACTS: Mapping[str, Callable[[Gpu], str | None]] = {
    "gpu_name": lambda gpu: gpu.name.value,
    "gpu_part": lambda gpu: gpu.part_number.value,
    "gpu_memory": _memory,
    "gpu_power_limit": _power,
    "interconnect": _interconnect,
}

CLASS = ("gpu_count", *_FACTS)
"""The names of all facts of a class."""
