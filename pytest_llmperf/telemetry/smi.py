"""What only ``nvidia-smi`` says, as text: the boost slider, power smoothing, and throttle counters by their names.

It takes up to half a second and holds locks of the driver meanwhile: before a measured window and after, never in it.
Its exit status is NVML's return code, and proves nothing: some versions refuse and exit with 0. Text that is not
understood is an unknown with the text kept, never a value.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar
from xml.etree import ElementTree as ET

from pytest_llmperf.model.gpu import Vboost
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.telemetry.nvml.session import answer_of

T = TypeVar("T")

PROGRAM = "nvidia-smi"

TIMEOUT_S = 20.0
"""It answers within a second where persistence mode is on; without it, each call initialises every GPU."""

_KEPT = 2000
"""Characters of a text that is kept as evidence."""


def run(*arguments: str, timeout_s: float = TIMEOUT_S) -> Reading[str]:
    """What ``nvidia-smi ARGUMENTS`` prints; killed, with what it started, after ``timeout_s``."""
    command = f"{PROGRAM} {' '.join(arguments)}"
    try:
        process = subprocess.Popen(
            [PROGRAM, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError:
        return lacking(Answer.UNSUPPORTED, f"{command}: not found")
    except OSError as error:
        return lacking(Answer.NOT_PERMITTED, f"{command}: {error.strerror}")
    try:
        text, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # a process that waits for a broken driver cannot even be killed
            process.communicate(timeout=1.0)
        return lacking(Answer.UNKNOWN, f"{command}: no answer within {timeout_s:g} s")
    if process.returncode:
        shown = " ".join(text.split())[:_KEPT]
        return lacking(answer_of(process.returncode), f"{command}: exit {process.returncode}: {shown}")
    return Reading(text, evidence=command)


def vboost() -> Reading[Mapping[int, Vboost]]:
    """The boost slider of each GPU by index."""
    return _parsed(run("boost-slider", "-l"), vboosts)


def power_smoothing() -> Reading[Mapping[str, Reading[bool]]]:
    """Whether power smoothing is on, by PCI bus id in lower case.

    Not from NVML: the number of its field is another thing's on other drivers.
    """
    return _parsed(run("-q", "-x"), smoothings)


def throttle_counters() -> Reading[Mapping[str, Mapping[str, int]]]:
    """By uuid: nanoseconds of each cumulative counter in ``COUNTERS``, by names that no driver renumbers."""
    return _parsed(run(f"--query-gpu=uuid,{','.join(COUNTERS.values())}", "--format=csv"), counters)


COUNTERS = {
    "power_cap_ns": "clocks_event_reasons_counters.sw_power_cap",
    "sw_thermal_ns": "clocks_event_reasons_counters.sw_thermal_slowdown",
    "hw_thermal_ns": "clocks_event_reasons_counters.hw_thermal_slowdown",
    "power_brake_ns": "clocks_event_reasons_counters.hw_power_brake_slowdown",
}
"""Columns of ``model.telemetry.Counters``, and what nvidia-smi calls them."""

_ROW = re.compile(r"^\|\s*(\d+)\s+vboost\s+(\d+)\s+(\d+)\s*\|\s*$", re.MULTILINE)


def vboosts(text: str) -> dict[int, Vboost]:
    """The rows of ``nvidia-smi boost-slider -l``: GPU, slider, maximum, current.

    Raises:
        ValueError: no row of this shape, or one that cannot be.
    """
    rows = {int(gpu): Vboost(current=int(now), maximum=int(most)) for gpu, most, now in _ROW.findall(text)}
    if not rows or any(row.current > row.maximum for row in rows.values()):
        raise ValueError("no table of boost sliders")
    return rows


def smoothings(text: str) -> dict[str, Reading[bool]]:
    """``power_smoothing`` of each GPU in ``nvidia-smi -q -x``.

    Recorded is "N/A", which an H200 says; what a GPU that has it says is not, so anything but the words "Enabled" and
    "Disabled" is an unknown.

    Raises:
        ValueError: no XML, or without GPUs.
    """
    try:
        root = ET.fromstring(text)  # noqa: S314 (of our own child process)
    except ET.ParseError as error:
        raise ValueError(f"no XML: {error}") from error
    found = {gpu.attrib.get("id", "").lower(): _smoothing(gpu.find("power_smoothing")) for gpu in root.iter("gpu")}
    if not found:
        raise ValueError("no GPU")
    return found


def _smoothing(element: ET.Element | None) -> Reading[bool]:
    evidence = "nvidia-smi -q -x: power_smoothing"
    if element is None:
        return lacking(Answer.UNSUPPORTED, f"{evidence}: not there")
    words = " ".join("".join(element.itertext()).split())
    if words == "N/A":
        return lacking(Answer.UNSUPPORTED, f"{evidence}: {words}")
    states = {word for word in words.split() if word in {"Enabled", "Disabled"}}
    if len(states) != 1:
        return lacking(Answer.UNKNOWN, f"{evidence}: {words[:_KEPT]}")
    return Reading(states == {"Enabled"}, evidence=evidence)


def counters(text: str) -> dict[str, dict[str, int]]:
    """The CSV of ``throttle_counters``. A counter that a GPU does not have is left out.

    Raises:
        ValueError: another header, or a row that does not fit it.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    header = [column.strip() for column in lines[0].split(",")] if lines else []
    if header != ["uuid", *(f"{name} [us]" for name in COUNTERS.values())]:
        raise ValueError("no table of counters")
    return dict(_counter_row(line) for line in lines[1:])


def _counter_row(line: str) -> tuple[str, dict[str, int]]:
    uuid, *cells = (cell.strip() for cell in line.split(","))
    if len(cells) != len(COUNTERS):
        raise ValueError(f"a row of {len(cells)} counters")
    values = {}
    for name, cell in zip(COUNTERS, cells, strict=True):
        if found := re.fullmatch(r"(\d+) us", cell):
            values[name] = int(found[1]) * 1000
        elif not cell.startswith("[") and cell != "N/A":
            raise ValueError(f"{cell!r} is no counter")
    return uuid, values


def _parsed(printed: Reading[str], parse: Callable[[str], T]) -> Reading[T]:
    if printed.value is None:
        return lacking(printed.answer, printed.evidence)
    try:
        return Reading(parse(printed.value), evidence=printed.evidence)
    except ValueError as error:
        shown = " ".join(printed.value.split())[:_KEPT]
        return lacking(Answer.UNKNOWN, f"{printed.evidence}: {error}: {shown}")
