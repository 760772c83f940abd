"""The kernel log: what the NVIDIA driver has reported of its GPUs."""

from __future__ import annotations

import os
import re
from pathlib import Path

from pytest_llmperf.clock import Clock
from pytest_llmperf.model.host_facts import Xid
from pytest_llmperf.model.reading import Answer, Reading, lacking

_XID = re.compile(r"^\d+,\d+,(\d+),.*?NVRM: Xid \(PCI:([0-9a-fA-F:.]+)\): (\d+)")
_KERNEL_LOG_BYTES = 16 << 20


def xids(kmsg: Path, clock: Clock) -> Reading[tuple[Xid, ...]]:
    """Error reports of the driver in the kernel log, whose stamps are microseconds since the machine started."""
    try:
        lines = _kernel_log(kmsg)
    except PermissionError:
        return lacking(Answer.NOT_PERMITTED, f"{kmsg}: permission denied")
    except OSError as error:
        return lacking(Answer.UNSUPPORTED, f"{kmsg}: {error.strerror}")
    now_us = clock.monotonic_ns() / 1000
    found = [match for line in lines if (match := _XID.match(line))]
    xids = (
        Xid(bus_id=bus, code=int(code), age_s=(now_us - int(at)) / 1e6) for at, bus, code in (m.groups() for m in found)
    )
    return Reading(tuple(xids), evidence=str(kmsg))


def _kernel_log(kmsg: Path) -> list[str]:
    """Everything that is there now: each read gives one record, and none would block."""
    descriptor = os.open(kmsg, os.O_RDONLY | os.O_NONBLOCK)
    records: list[bytes] = []
    size = 0
    try:
        while size < _KERNEL_LOG_BYTES:
            try:
                record = os.read(descriptor, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:  # records were overwritten while we read
                continue
            if not record:
                break
            records.append(record)
            size += len(record)
    finally:
        os.close(descriptor)
    return b"".join(records).decode(errors="replace").splitlines()
