"""The telemetry of a saved run: ``telemetry.json`` beside the sampler's ``telemetry.jsonl``, which has the samples."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pytest_llmperf.model.telemetry import Telemetry
from pytest_llmperf.telemetry import samples_file

NAME = "telemetry.json"
SCHEMA = 1
"""Of the JSON form; raised when an older reader would misread a newer file."""


def write(folder: Path, telemetry: Telemetry) -> None:
    """All but the samples, which the sampler has written."""
    bare = replace(telemetry, gpus=tuple(replace(gpu, samples=()) for gpu in telemetry.gpus))
    plain = _adapter().dump_python(bare, mode="json", exclude_defaults=True)
    (folder / NAME).write_text(json.dumps({"schema": SCHEMA, **plain}, indent=1), encoding="utf-8")


def read(folder: Path) -> Telemetry | None:
    """What ``write`` wrote, with the samples; None where there was none.

    Raises:
        ValueError: of another schema, or damaged.
    """
    try:
        plain = json.loads((folder / NAME).read_bytes())
    except FileNotFoundError:
        return None
    if plain.pop("schema", None) != SCHEMA:
        raise ValueError(f"telemetry of another schema than {SCHEMA}, which this version reads")
    telemetry: Telemetry = _adapter().validate_python(plain)
    sampled = samples_file.read(folder / samples_file.NAME, [gpu.uuid for gpu in telemetry.gpus])
    first, end = telemetry.ticks
    return replace(
        telemetry,
        gpus=tuple(
            replace(gpu, samples=tuple(each for each in sampled.gpus[gpu.uuid].samples if first <= each.tick < end))
            for gpu in telemetry.gpus
        ),
    )


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415 (takes a moment, and most runs have no GPU)

    return TypeAdapter(Telemetry)
