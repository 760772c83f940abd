"""Who uses the GPUs: processes that are not ours, memory that nobody is seen to hold, ranks in the wrong place."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_llmperf.checks.condition import Seen, Subject, not_applicable, unread, verdict
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.finding import Status
from pytest_llmperf.model.gpu import Gpu, Process

MEMORY_SHARE = 0.01
"""Of the memory: a driver's own, and what a few monitoring processes hold."""

UTILISATION_PERCENT = 5

_ASK = "find out whose it is and wait, or choose other GPUs; nothing is ended for you"


_NOBODY = "a process of another namespace, or one that died: look on the host; else reset the GPU"


def named(process: Process) -> str:
    """A process for people: name, number, and whose it is."""
    return f"{process.name or 'a process'} (PID {process.pid}{', ' + process.user if process.user else ''})"


def foreign_processes(subject: Subject) -> Seen:
    """Processes that are neither the engine's nor allowed.

    One that has a number of another namespace is unattributable: a stranger's or ours, nobody can say.
    """
    if not subject.snapshot.gpus:
        return not_applicable("no GPU")
    for gpu in subject.snapshot.gpus:
        if gpu.processes.value is None:
            return unread(gpu.processes, "none")
    others = _others(subject)
    here = sorted({(each.pid, named(each)) for each in others if each.here})
    hidden = sorted({each.pid for each in others if not each.here})
    reading = subject.snapshot.gpus[0].processes
    if here or not hidden:
        return verdict(
            not here,
            "; ".join(words for _, words in here) or "none",
            expected="none",
            reading=reading,
            remedy=f"{_ASK}; or allow it by name",
        )
    return Seen(
        status=Status.UNKNOWN,
        value=f"unattributable: PID {', '.join(map(str, hidden))} of another namespace",
        expected="none",
        evidence=reading.evidence,
        remedy="look on the host, outside the container",
    )


def memory_in_use(gpu: Gpu, subject: Subject) -> Seen:
    """Memory that neither the engine nor an allowed process holds, whether or not a holder is seen."""
    memory = gpu.memory.value
    if memory is None:
        return unread(gpu.memory, f"at most {MEMORY_SHARE:.0%}")
    there = gpu.processes.value or ()
    known = [each for each in there if each.pid in subject.own or _is_allowed(each, subject)]
    hidden = bool(subject.own) and not any(each.pid in subject.own for each in there)
    if hidden or any(each.memory_bytes is None for each in known):
        return Seen(
            status=Status.UNKNOWN,
            value="what the engine itself holds is not known",
            expected=f"at most {MEMORY_SHARE:.0%} beside it",
            evidence=gpu.processes.evidence,
        )
    reserved_too = memory.reserved is None and not known  # an old driver counts its own as used
    used = max(memory.used - sum(each.memory_bytes or 0 for each in known), 0)
    share = used / memory.total if memory.total else 0.0
    owners = [each for each in there if each not in known]
    nobody = "" if owners or share <= MEMORY_SHARE else ", and no process is seen to hold it"
    return verdict(
        share <= MEMORY_SHARE,
        f"{used / 2**20:.0f} MiB in use{', the driver included' * reserved_too}{nobody}",
        fact="free" if share <= MEMORY_SHARE else "in use",
        expected=f"at most {MEMORY_SHARE:.0%} of {memory.total / 2**30:.0f} GiB",
        reading=gpu.memory,
        remedy=_ASK if owners else _NOBODY,
    )


def idle_utilisation(gpu: Gpu, subject: Subject) -> Seen:
    """Work on a GPU that should be at rest: it shows neighbours whose processes are hidden."""
    used = gpu.utilisation_percent.value
    if subject.own:
        return not_applicable("the engine runs")
    if used is None:
        return unread(gpu.utilisation_percent, f"at most {UTILISATION_PERCENT} %")
    idle = used <= UTILISATION_PERCENT
    return verdict(
        idle,
        f"{used} %",
        fact="idle" if idle else "busy",
        expected=f"at most {UTILISATION_PERCENT} %",
        reading=gpu.utilisation_percent,
        remedy=_ASK,
    )


def rank_memory(subject: Subject) -> Seen:
    """What ranks take on GPUs that are not theirs: each that opens GPU 0 first leaves a context there, of 500 MiB."""
    if not subject.own or len(subject.snapshot.gpus) < 2:  # noqa: PLR2004
        return not_applicable("no engine on several GPUs")
    held = _held(subject)
    strays: dict[int, int] = {}
    for shares in held.values():
        home = max(sorted(shares), key=lambda index: shares[index])
        for index, size in shares.items():
            # a process that holds about as much elsewhere drives several GPUs
            if index != home and size < shares[home] / 2:
                strays[index] = strays.get(index, 0) + size
    named = [f"GPU {index}: {size / 2**20:.0f} MiB" for index, size in sorted(strays.items())]
    return verdict(
        not strays,
        f"of ranks that belong elsewhere, {', '.join(named)}" if named else "each rank on its own GPU",
        expected="each rank on its own GPU",
        reading=subject.snapshot.gpus[0].processes,
        remedy="set the device before the first CUDA call, or show each rank its own GPU alone",
    )


def _held(subject: Subject) -> dict[int, dict[int, int]]:
    """Of each of the engine's processes: bytes by GPU."""
    held: dict[int, dict[int, int]] = {}
    for gpu in subject.snapshot.gpus:
        for each in gpu.processes.value or ():
            if each.pid in subject.own and each.memory_bytes:
                held.setdefault(each.pid, {})[gpu.index] = each.memory_bytes
    return held


def _others(subject: Subject) -> list[Process]:
    return [
        each
        for gpu in subject.snapshot.gpus
        for each in gpu.processes.value or ()
        if each.pid not in subject.own and not _is_allowed(each, subject)
    ]


def _is_allowed(process: Process, subject: Subject) -> bool:
    allowed: Iterable[str] = subject.expectations.get("foreign_processes", Expectation()).allow
    return process.name.rpartition("/")[2] in allowed
