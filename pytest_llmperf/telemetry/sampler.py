"""The sampler process: ``python -P -m pytest_llmperf.telemetry.sampler ORDER`` looks at GPUs while others load them.

A process of its own, since the load client needs its own for itself. It says "ready" when the GPUs have answered once,
begins with the line "begin" (and says "begun"), ends with the line "end", and dies at once when its standard input
closes: then nobody is left who could want what it sees. What it sees are lines of JSON in a file (``samples_file``).

In between it asks scalar questions only, which take a microsecond or two on an H200. The call for fields of all kinds
takes about half a millisecond for each field there: those are read before the first look and after the last.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.telemetry import processes
from pytest_llmperf.telemetry.nvml import events, throttle
from pytest_llmperf.telemetry.nvml.session import Session, session

MOST_TICKS = 200_000
"""Looks at each GPU, which bound the file: 27 hours at the default interval, 5 at the shortest."""

CHEAP_NS = 100_000
"""A question that is not needed for any verdict is only asked when the driver answers it in less."""

PROCESSES_EVERY_NS = 5_000_000_000
"""How often it is asked who uses a GPU, which takes tens of microseconds."""

_TRIALS = 5
_SM, _MEMORY = 1, 2
_POWER_INSTANT = 186
"""NVML's field; the scalar call for power gives the mean of a second."""

Question = Callable[[], Reading[int]]
Wait = Callable[[float], str]
Write = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to sample.

    Attributes:
        file: where the lines go.
        uuids: of the GPUs.
        interval_ns: from one look to the next.
        cores: of this machine, on which the sampler runs; () for any.
    """

    file: str
    uuids: tuple[str, ...]
    interval_ns: int
    cores: tuple[int, ...] = ()

    def text(self) -> str:
        """As the one argument of the process."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Order:
        """The order that ``text`` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "uuids": tuple(fields["uuids"]), "cores": tuple(fields["cores"])})


class Device:
    """One GPU and what it can be asked; a GPU that is lost is not asked again.

    Attributes:
        left_out: questions that are not asked, each with the reason.
    """

    def __init__(self, nvml: Session, index: int, handle: Reading[Any], clock: Clock) -> None:
        self.index = index
        self.handle = handle.value
        self.lost = "" if handle.known else handle.evidence
        self.left_out: dict[str, str] = {}
        self._nvml = nvml
        self._clock = clock
        self._met: set[int] = set()
        self._questions = {} if self.lost else self._answered(_questions(nvml, self.handle))

    def look(self, tick: int) -> Iterator[dict[str, Any]]:
        """One sample; and one last line when the GPU has gone."""
        if self.lost:
            return
        sample: dict[str, Any] = {"gpu": self.index, "tick": tick, "at_ns": self._clock.monotonic_ns()}
        for name, question in self._questions.items():
            reading = question()
            if reading.answer is Answer.FAILED:
                self.lost = reading.evidence
                break
            if reading.value is not None:
                sample[name] = reading.value
        yield sample
        if self.lost:
            yield {"gpu": self.index, "lost": self.lost}

    def newcomers(self) -> Iterator[dict[str, Any]]:
        """The processes on it that were not told of before."""
        found: Reading[list[Any]] = lacking(Answer.FAILED, self.lost)
        if not self.lost:
            found = self._nvml.ask("nvmlDeviceGetComputeRunningProcesses", self.handle, change=list)
        for entry in found.value or ():
            if entry.pid not in self._met:
                self._met.add(entry.pid)
                yield {"gpu": self.index, "process": asdict(processes.describe(entry.pid, entry.usedGpuMemory))}

    def _answered(self, asked: Mapping[str, tuple[Question, ...]]) -> dict[str, Question]:
        """Of each fact the newest question that is answered, unless it takes long and can be done without."""
        chosen: dict[str, Question] = {}
        for name, questions in asked.items():
            readings = [question() for question in questions]
            known = [question for question, reading in zip(questions, readings, strict=True) if reading.known]
            if not known:
                self.lost = self.lost or next((r.evidence for r in readings if r.answer is Answer.FAILED), "")
                self.left_out[name] = readings[0].evidence
            elif name == "power_mw" and (cost := self._cost_ns(known[0])) > CHEAP_NS:
                self.left_out[name] = f"takes {cost / 1000:.0f} us"
            else:
                chosen[name] = known[0]
        return chosen

    def _cost_ns(self, question: Question) -> float:
        costs = []
        for _ in range(_TRIALS):
            begun = self._clock.monotonic_ns()
            question()
            costs.append(self._clock.monotonic_ns() - begun)
        return median(costs)


def _questions(nvml: Session, handle: Any) -> dict[str, tuple[Question, ...]]:
    """By column of ``model.telemetry.Sample``, newest name of a call first."""

    def get(name: str, *args: Any) -> Question:
        return lambda: nvml.ask(f"nvmlDeviceGet{name}", handle, *args, change=int)

    return {
        "sm_clock_mhz": (get("ClockInfo", _SM),),
        "memory_clock_mhz": (get("ClockInfo", _MEMORY),),
        "temperature_c": (get("TemperatureV", 0), get("Temperature", 0)),
        "event_reasons": (get("CurrentClocksEventReasons"), get("CurrentClocksThrottleReasons")),
        "power_mw": (lambda: nvml.field(handle, _POWER_INSTANT),),
    }


def watch(devices: Sequence[Device], wait: Wait, write: Write, clock: Clock, interval_ns: int) -> dict[str, Any]:
    """Look at every device at each tick until ``wait`` hears something; the facts of the last line.

    Ticks count from now. One that was missed leaves its number out; nothing is asked twice to make up for it.
    """
    origin, tick, longest = clock.monotonic_ns(), 0, 0
    asked = origin
    write({"origin_ns": origin, "interval_ns": interval_ns})
    while tick < MOST_TICKS:
        if wait(max(origin + tick * interval_ns - clock.monotonic_ns(), 0) / 1e9):
            return {"end": "asked to", "longest_look_ns": longest}
        begun = clock.monotonic_ns()
        tick = max(tick, (begun - origin) // interval_ns)
        for device in devices:
            for line in device.look(tick):
                write(line)
        if begun - asked >= PROCESSES_EVERY_NS:
            asked = begun
            for device in devices:
                for line in device.newcomers():
                    write(line)
        longest = max(longest, clock.monotonic_ns() - begun)
        tick += 1
    _next_word(wait)
    return {"end": f"after {MOST_TICKS} looks", "longest_look_ns": longest}


def main() -> None:
    """Run the order named on the command line."""
    order = Order.of(sys.argv[1])
    if order.cores:
        os.sched_setaffinity(0, order.cores)
    wait = _ears(sys.stdin.fileno())
    with open(order.file, "w", encoding="utf-8") as file, session() as nvml:  # noqa: PTH123 (one import less)

        def write(line: Mapping[str, Any]) -> None:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
            file.flush()

        if isinstance(nvml, Reading):
            write({"end": nvml.evidence})
            return
        _serve(nvml, order, wait, write)


def _serve(nvml: Session, order: Order, wait: Wait, write: Write) -> None:
    handles = _handles(nvml)
    gone: Reading[Any] = Reading(None, Answer.FAILED, "NVML does not list it")
    devices = [Device(nvml, index, handles.get(uuid, gone), CLOCK) for index, uuid in enumerate(order.uuids)]
    live = {device.index: device.handle for device in devices if not device.lost}
    reports = events.Reports(nvml, live)
    write({"uuids": order.uuids, "left_out": {device.index: device.left_out for device in devices}})
    for device in devices:
        if device.lost:
            write({"gpu": device.index, "lost": device.lost})
    _say("ready")
    if _next_word(wait) != "begin":
        return
    _count(nvml, "before", live, write)
    _say("begun")
    end = watch(devices, wait, write, CLOCK, order.interval_ns)
    _count(nvml, "after", live, write)
    for index, code in reports.drained():
        write({"gpu": index, "xid": code})
    write({**end, "reports": reports.unheard})


def _next_word(wait: Wait) -> str:
    """Bounded by the life of whoever speaks: when he is gone, so are we."""
    while not (word := wait(60.0)):
        pass
    return word


def _handles(nvml: Session) -> dict[str, Reading[Any]]:
    count = nvml.ask("nvmlDeviceGetCount", change=int).value or 0
    handles: dict[str, Reading[Any]] = {}
    for index in range(count):
        handle: Reading[Any] = nvml.ask("nvmlDeviceGetHandleByIndex", index)
        uuid = nvml.ask("nvmlDeviceGetUUID", handle.value, change=str) if handle.known else handle
        if uuid.value is not None:
            handles[uuid.value] = handle
    return handles


def _count(nvml: Session, when: str, live: Mapping[int, Any], write: Write) -> None:
    """Energy first: it alone goes on counting while nothing runs."""
    energies = {
        index: nvml.ask("nvmlDeviceGetTotalEnergyConsumption", handle, change=int) for index, handle in live.items()
    }
    for index, handle in live.items():
        energy = energies[index]
        write(
            {
                "counters": when,
                "gpu": index,
                "energy_mj": energy.value,
                "energy": energy.evidence,
                "fields": throttle.fields(nvml, handle),
            }
        )


def _ears(stdin: int) -> Wait:
    """What a line says, "" when none has come in time; from a thread, so that a driver that hangs cannot keep us."""
    heard: queue.SimpleQueue[str] = queue.SimpleQueue()

    def listen() -> None:
        unread = b""
        while data := os.read(stdin, 4096):  # not sys.stdin, whose lock the interpreter wants when it ends
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                heard.put(line.decode())
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()

    def wait(seconds: float) -> str:
        try:
            return heard.get(timeout=seconds) if seconds > 0 else heard.get_nowait()
        except queue.Empty:
            return ""

    return wait


def _say(word: str) -> None:
    try:
        print(word, flush=True)  # noqa: T201 (to the parent)
    except BrokenPipeError:
        os._exit(1)


if __name__ == "__main__":
    main()
