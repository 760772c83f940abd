"""Error reports of the driver (Xid) as NVML's events: registered for before a window, collected after it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_llmperf.model.reading import Reading
from pytest_llmperf.telemetry.nvml.session import Session

XID_CRITICAL_ERROR = 0x8

MOST = 1000
"""Reports of one window; a GPU that is broken sends them for ever."""

_NOW_MS = 1


class Reports:
    """The events that the driver keeps for us from here on; nothing is asked until ``drained``.

    Attributes:
        unheard: why the reports of a GPU cannot be had, by its number; {} is well.
    """

    def __init__(self, nvml: Session, handles: Mapping[int, Any]) -> None:
        self._nvml = nvml
        self._handles = handles
        self.unheard: dict[int, str] = {}
        made: Reading[Any] = nvml.ask("nvmlEventSetCreate")
        self._set = made.value
        for index, handle in handles.items():
            registered = made
            if made.known:
                registered = nvml.ask(
                    "nvmlDeviceRegisterEvents", handle, XID_CRITICAL_ERROR, made.value, change=lambda _: True
                )
            if not registered.known:
                self.unheard[index] = registered.evidence

    def drained(self) -> Iterator[tuple[int, int]]:
        """Number of the GPU and of the report, for each that came since."""
        indices = {_address(handle): index for index, handle in self._handles.items()}
        for _ in range(MOST):
            if self._set is None or len(self.unheard) == len(self._handles):
                return
            event: Reading[Any] = self._nvml.ask("nvmlEventSetWait_v2", self._set, _NOW_MS)
            if event.value is None:  # no more within the time
                return
            index = indices.get(_address(event.value.device))
            if event.value.eventType & XID_CRITICAL_ERROR and index is not None:
                yield index, int(event.value.eventData)


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
