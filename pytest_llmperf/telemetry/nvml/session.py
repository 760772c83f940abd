"""A session with NVML: each call ends as a reading, whatever the library, the driver or the binding does.

NVML's return codes say why there is no answer; the table is ``answer_of``. What a call raises that is no NVML error (a
binding that disagrees with its own constants, text that is no UTF-8) is an unknown, with the exception as evidence.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pytest_llmperf.model.reading import Answer, Reading, lacking

T = TypeVar("T")

_ANSWERS = {
    3: Answer.UNSUPPORTED,  # NOT_SUPPORTED
    4: Answer.NOT_PERMITTED,  # NO_PERMISSION
    9: Answer.UNSUPPORTED,  # DRIVER_NOT_LOADED
    12: Answer.UNSUPPORTED,  # LIBRARY_NOT_FOUND
    13: Answer.UNSUPPORTED,  # FUNCTION_NOT_FOUND
    15: Answer.FAILED,  # GPU_IS_LOST
    16: Answer.FAILED,  # RESET_REQUIRED
    25: Answer.UNSUPPORTED,  # ARGUMENT_VERSION_MISMATCH
    26: Answer.UNSUPPORTED,  # DEPRECATED
}


def answer_of(code: int) -> Answer:
    """What an NVML return code other than 0 says; nvidia-smi exits with the same numbers."""
    return _ANSWERS.get(code, Answer.UNKNOWN)


class Session:
    """An initialised NVML. Not for several threads: some calls of the binding share their buffers."""

    def __init__(self, nvml: Any) -> None:
        self.nvml = nvml

    def ask(self, call: str, *args: Any, change: Callable[[Any], T] = lambda value: value) -> Reading[T]:
        """The value of ``pynvml.CALL(*args)``, changed into what the model holds."""
        function = getattr(self.nvml, call, None)
        if function is None:
            return lacking(Answer.UNSUPPORTED, f"{call}: not in this nvidia-ml-py")
        try:
            return Reading(change(_text(function(*args))), evidence=call)
        except self.nvml.NVMLError as error:
            return lacking(answer_of(error.value), f"{call}: {error.value} {error}")
        except Exception as error:  # noqa: BLE001 (whatever a binding raises is an answer that we do not have)
            return lacking(Answer.UNKNOWN, f"{call}: {type(error).__name__}: {error}")

    def first(self, *readings: Callable[[], Reading[T]]) -> Reading[T]:
        """The first that is known, of calls from the newest to the oldest; else what the newest said."""
        newest = readings[0]()
        if newest.known or newest.answer is not Answer.UNSUPPORTED:
            return newest
        for older in readings[1:]:
            if (reading := older()).known:
                return reading
        return newest

    def fill(self, call: str, handle: Any, structures: Sequence[str], change: Callable[[Any], T]) -> Reading[T]:
        """A call that fills a structure: the newest of ``structures`` that both binding and driver know."""
        readings: list[Callable[[], Reading[T]]] = [
            lambda name=name: self._fill(call, handle, name, change)  # type: ignore[misc]
            for name in structures
            if hasattr(self.nvml, name)
        ]
        return self.first(*readings) if readings else lacking(Answer.UNSUPPORTED, f"{call}: not in this nvidia-ml-py")

    def _fill(self, call: str, handle: Any, structure: str, change: Callable[[Any], T]) -> Reading[T]:
        into = getattr(self.nvml, structure)()
        # the binding hands its argument on as it is: without the reference, the driver would write anywhere
        return self.ask(call, handle, ctypes.byref(into), change=lambda _: change(into))

    def field(self, handle: Any, number: int) -> Reading[int]:
        """The value of one field; a driver answers each with a return code of its own."""
        return self.fields(handle, [(number, 0)])[0]

    def fields(self, handle: Any, asked: Sequence[tuple[int, int]]) -> list[Reading[int]]:
        """Fields by number and scope (of links: which one). About 0.4 ms each on an H200: not for a measured window."""
        whole = self.ask("nvmlDeviceGetFieldValues", handle, list(asked), change=list)
        if whole.value is None:
            return [lacking(whole.answer, whole.evidence)] * len(asked)
        return [_field(value) for value in whole.value]


@contextmanager
def session() -> Iterator[Session | Reading[Any]]:
    """NVML, or the reading that says why there is none: no binding, no library, no driver."""
    try:
        import pynvml  # noqa: PLC0415 (an engine's environment may lack it)
    except ImportError as error:
        yield lacking(Answer.UNSUPPORTED, f"nvidia-ml-py: {error}")
        return
    opened = Session(pynvml)
    started = opened.ask("nvmlInit", change=lambda _: True)
    if not started.known:
        yield started
        return
    try:
        yield opened
    finally:
        opened.ask("nvmlShutdown")


_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
"""Of the union in a field's value, by its type."""


def _field(value: Any) -> Reading[int]:
    evidence = f"NVML field {value.fieldId}" + (f" scope {value.scopeId}" if value.scopeId else "")
    if value.nvmlReturn:
        return lacking(answer_of(value.nvmlReturn), f"{evidence}: {value.nvmlReturn}")
    member = _MEMBERS.get(value.valueType)
    if member is None:
        return lacking(Answer.UNKNOWN, f"{evidence}: a value of type {value.valueType}")
    return Reading(int(getattr(value.value, member)), evidence=evidence)


def _text(value: Any) -> Any:
    """Old bindings answer in bytes, and some calls of new ones do."""
    return value.decode() if isinstance(value, bytes) else value
