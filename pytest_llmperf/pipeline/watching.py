"""Watching a run: the telemetry of its GPUs, what the rules say of it, what is saved; nothing where there are none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from pytest_llmperf.checks import clocks, invalidation
from pytest_llmperf.clock import Clock
from pytest_llmperf.engines.base import engine_of
from pytest_llmperf.metrics.energy import energy_j
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gpu import NamedGpu
from pytest_llmperf.model.run import Role
from pytest_llmperf.model.telemetry import Telemetry
from pytest_llmperf.pipeline.servers import Server
from pytest_llmperf.telemetry import nvml, processes, telemetry_file
from pytest_llmperf.telemetry.samples_file import Sampled
from pytest_llmperf.telemetry.watch import Watch

UNWATCHED: tuple[Role, ...] = ("warmup", "twin")
"""Runs that nobody judges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the telemetry of a run says.

    Attributes:
        environment: facts of the machine, as in ``Run.environment``.
        energy_j: of all GPUs of the case over the window; None where it is not known.
        temperatures_c: by uuid, before the window.
    """

    findings: tuple[Finding, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    energy_j: float | None = None
    temperatures_c: Mapping[str, int] = field(default_factory=dict)


class Watching:
    """A context around a run; ``window`` is the context of its load, ``told`` comes after both."""

    def __init__(self, case: Case, role: Role, server: Server, folder: Path, clock: Clock) -> None:
        self._case, self._role, self._server = case, role, server
        self._folder, self._clock = folder, clock
        self._watch: Watch | None = None
        self._gaps: tuple[Finding, ...] = ()
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        interval_s = self._case.suite.telemetry_interval_s
        wanted = self._case.suite.hardware
        if interval_s is None or self._role in UNWATCHED or not wanted_here(self._case, self._server):
            return self
        uuids = gpus_of(self._case, self._server)
        if len(uuids) < wanted.count:
            self._gaps = (_fewer(len(uuids), len(_fitting(nvml.find(), self._case)), wanted.count),)
        if uuids:
            self._watch = self._undo.enter_context(
                Watch(
                    uuids,
                    interval_s=interval_s,
                    folder=self._folder,
                    cores=self._server.client_cores,
                    clock=self._clock,
                )
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._undo.__exit__(kind, error, trace)

    def window(self) -> AbstractContextManager[None]:
        """What lasts as long as the load."""
        return nullcontext() if self._watch is None else self._watch.window()

    def told(self, window_ns: tuple[int, int]) -> Told:
        """Everything about the window; it is saved in the run's folder before any rule looks at it."""
        if self._watch is None:
            return Told(findings=self._gaps)
        telemetry = self._watch.telemetry(window_ns)
        telemetry_file.write(self._folder, telemetry)
        found = invalidation.examine(telemetry, own=_own(self._server, telemetry))
        return Told(
            findings=(*found, *_unseen(self._watch.seen(), self._watch.fault, found), *self._gaps),
            environment=_facts(telemetry),
            energy_j=None if self._gaps else energy_j(telemetry),
            temperatures_c=_temperatures(telemetry),
        )


def wanted_here(case: Case, server: Server) -> bool:
    """Whether the suite asks for GPUs, and the server is on this machine."""
    return case.suite.hardware.gpu is not None and engine_of(server.arm).elsewhere(server.arm) is None


def gpus_of(case: Case, server: Server) -> tuple[str, ...]:
    """The GPUs that a case is measured on, by uuid: as many as its suite asks for, of those that the engine may see."""
    environment = {**os.environ, **(server.arm.env if server.process is not None else {})}
    fitting = _fitting(visible(nvml.find(), environment), case)
    return tuple(gpu.uuid for gpu in fitting[: case.suite.hardware.count])


def _fitting(gpus: Sequence[NamedGpu], case: Case) -> list[NamedGpu]:
    return [gpu for gpu in gpus if case.suite.hardware.means(gpu.name)]


def visible(gpus: Sequence[NamedGpu], environment: Mapping[str, str]) -> list[NamedGpu]:
    """What CUDA_VISIBLE_DEVICES leaves of ``gpus``, in its order; all of them where it is not set.

    As CUDA reads it: numbers, or beginnings of uuids; the list ends at the first entry that names no GPU. Numbers are
    NVML's, by PCI bus: CUDA counts so too among GPUs of one kind.
    """
    text = environment.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return list(gpus)
    left: list[NamedGpu] = []
    for entry in (part.strip() for part in text.split(",")):
        named = [
            gpu for gpu in gpus if str(gpu.index) == entry or (entry.startswith("GPU-") and gpu.uuid.startswith(entry))
        ]
        if len(named) != 1:
            break
        left += named
    return left


def _fewer(visible_ones: int, present: int, wanted: int) -> Finding:
    """There were enough when the session began, or the case would not be measured: if not now, one was lost."""
    lost = present < wanted
    return Finding(
        check="telemetry_gpus",
        status=Status.FAIL if lost else Status.UNKNOWN,
        policy="require",
        value=f"NVML lists {present} of {wanted} GPUs" if lost else f"{visible_ones} of {wanted} GPUs are seen",
        expected="all that the suite asks for",
        evidence="NVML" if lost else "CUDA_VISIBLE_DEVICES",
        remedy=("see the kernel log; reboot" if lost else "let CUDA_VISIBLE_DEVICES here be what it is for the engine"),
    )


def _own(server: Server, telemetry: Telemetry) -> frozenset[int]:
    """The engine's processes; of a server of somebody else those that were on its GPUs before."""
    if server.process is not None:
        return processes.tree(server.process.pid)
    gpus = () if telemetry.before is None else telemetry.before.gpus
    return frozenset(each.pid for gpu in gpus for each in gpu.processes.value or ())


def _unseen(seen: Sampled, fault: str, found: Sequence[Finding]) -> tuple[Finding, ...]:
    """What was not seen: the sampler was late or died, or nobody could hear of error reports."""
    unheard = [f"{uuid}: {gpu.unheard}" for uuid, gpu in seen.gpus.items() if gpu.unheard]
    wrong = [fault] if fault else [] if seen.whole else [f"the sampler ended early: {seen.end or 'it did not say why'}"]
    wrong += [each.value for each in found if each.check == "telemetry" and each.status is not Status.PASS]
    usual = Finding(
        check="telemetry_sampler",
        status=Status.PASS,
        policy="warn",
        value=f"the longest look took {seen.longest_look_ns / 1e6:.1f} ms",
        expected="samples until the end of the window",
        evidence="telemetry.jsonl",
        remedy="give the sampler a core that nobody else uses; sampler.log in the run's folder has what it said",
    )
    value = f"telemetry is incomplete: {'; '.join(wrong)}"
    told = [replace(usual, status=Status.FAIL, value=value) if wrong else usual]
    if unheard:
        told.append(
            replace(
                usual,
                check="during_xid_events",
                status=Status.UNSUPPORTED,
                value=f"only the kernel log tells of error reports: {'; '.join(unheard)}",
                expected="events of NVML",
                remedy="",
            )
        )
    return tuple(told)


def _temperatures(telemetry: Telemetry) -> dict[str, int]:
    gpus = () if telemetry.before is None else telemetry.before.gpus
    return {gpu.uuid: gpu.temperature_c.value for gpu in gpus if gpu.temperature_c.value is not None}


def _facts(telemetry: Telemetry) -> dict[str, str]:
    snapshot = telemetry.before
    clock = clocks.slowest_sm_clock_mhz(telemetry)
    facts = {"gpu_uuids": " ".join(sorted(gpu.uuid for gpu in telemetry.gpus))}
    if snapshot is not None:
        names = sorted({gpu.name.value for gpu in snapshot.gpus if gpu.name.value})
        facts |= {"gpu": " and ".join(names)} if names else {}
        facts |= {"driver": snapshot.driver.value} if snapshot.driver.value else {}
        facts |= {"cuda": str(snapshot.cuda.value)} if snapshot.cuda.value else {}
    return facts if clock is None else {**facts, "sm_clock_mhz": f"{clock:.0f}"}
