"""The sampler's file, ``telemetry.jsonl``, read back: what each GPU showed, and how the sampling itself went.

One JSON object a line: who is sampled and what was left out; counters before; the schedule; samples; what was lost;
counters after; error reports; how it ended. A sampler that was killed leaves what it had written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_llmperf.model.gpu import Process
from pytest_llmperf.model.telemetry import Sample

NAME = "telemetry.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A GPU's counters at one moment: energy, why it is not known, and NVML's fields by number."""

    energy_mj: int | None = None
    energy: str = ""
    fields: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Seen:
    """What one GPU showed.

    Attributes:
        left_out: questions that were not asked, with the reason.
        lost: what the driver said when it stopped answering.
        processes: all that were seen on it.
        xids: numbers of the driver's error reports.
        unheard: why there could not be any, "" where there could.
    """

    samples: list[Sample] = field(default_factory=list)
    before: Counted = Counted()
    after: Counted = Counted()
    left_out: Mapping[str, str] = field(default_factory=dict)
    lost: str = ""
    processes: list[Process] = field(default_factory=list)
    xids: list[int] = field(default_factory=list)
    unheard: str = ""


@dataclass(slots=True, kw_only=True)
class Sampled:
    """A whole file.

    Attributes:
        origin_ns: when tick 0 was due, CLOCK_MONOTONIC; None when sampling never began.
        end: how it ended; "" when it did not say, and so died.
        longest_look_ns: the longest that one look at all GPUs took.
    """

    gpus: dict[str, Seen] = field(default_factory=dict)
    origin_ns: int | None = None
    end: str = ""
    longest_look_ns: int = 0

    @property
    def whole(self) -> bool:
        """Whether it went on until it was asked to end."""
        return self.end == "asked to"


def read(file: Path, uuids: Sequence[str]) -> Sampled:
    """What a sampler left in ``file``; a file that is not there, or a last line that is cut, is a sampler that died."""
    sampled = Sampled(gpus={uuid: Seen() for uuid in uuids})
    for line in _lines(file):
        _take(line, sampled, list(sampled.gpus.values()))
    return sampled


def _lines(file: Path) -> list[dict[str, Any]]:
    try:
        texts = file.read_bytes().splitlines()
    except OSError:
        return []
    lines: list[dict[str, Any]] = []
    for text in texts:
        try:
            line = json.loads(text)
        except ValueError:
            break
        if isinstance(line, dict):
            lines.append(line)
    return lines


def _take(line: dict[str, Any], sampled: Sampled, seen: Sequence[Seen]) -> None:
    match line:
        case {"gpu": int(index)}:
            _take_of(seen[index], line)
        case {"origin_ns": int(origin)}:
            sampled.origin_ns = origin
        case {"left_out": dict(left_out)}:
            for index, reasons in left_out.items():
                seen[int(index)].left_out = reasons
        case {"end": str(end)}:
            sampled.end = end
            sampled.longest_look_ns = line.get("longest_look_ns", 0)
            for index, reason in line.get("reports", {}).items():
                seen[int(index)].unheard = reason
        case _:
            pass


def _take_of(gpu: Seen, line: dict[str, Any]) -> None:
    match line:
        case {"tick": int()}:
            gpu.samples.append(Sample(**{key: value for key, value in line.items() if key != "gpu"}))
        case {"counters": str(when)}:
            fields = {int(number): value for number, value in line["fields"].items()}
            setattr(gpu, when, Counted(energy_mj=line["energy_mj"], energy=line["energy"], fields=fields))
        case {"lost": str(lost)}:
            gpu.lost = lost
        case {"process": dict(process)}:
            gpu.processes.append(Process(**process))
        case {"xid": int(code)}:
            gpu.xids.append(code)
        case _:
            pass
