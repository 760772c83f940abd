"""A snapshot: one machine at one moment, whole, so that every check of it is a pure function and can be repeated."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from pytest_llmperf.model.gpu import Gpu
from pytest_llmperf.model.host_facts import HostFacts
from pytest_llmperf.model.reading import NOT_READ, Reading

SCHEMA = 1
"""Of the JSON form; raised when an older reader would misread a newer file."""

Origin = Literal["live", "recorded", "derived", "synthetic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A machine, read once.

    Attributes:
        taken: UTC, ISO 8601.
        origin: ``live``: read just now. ``recorded``: read from a real machine and stored. ``derived``: recorded, and
            changed as ``note`` says. ``synthetic``: made up; nobody has seen such a machine.
        note: what was changed, or where it was recorded.
        driver: its version. Without a driver, a library or a GPU this says why, and ``gpus`` is ().
        cuda: the newest version that the driver can run, as 13000 for 13.0.
    """

    taken: str
    origin: Origin
    host: HostFacts
    gpus: tuple[Gpu, ...] = ()
    note: str = ""
    driver: Reading[str] = NOT_READ
    cuda: Reading[int] = NOT_READ
    confidential_compute: Reading[bool] = NOT_READ

    def of(self, uuids: Collection[str]) -> Snapshot:
        """The same machine with these GPUs alone: those that a case leases."""
        return replace(self, gpus=tuple(gpu for gpu in self.gpus if gpu.uuid in uuids))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what was not read is left out."""
        plain: dict[str, Any] = _adapter().dump_python(self, mode="json", exclude_defaults=True)
        return {"schema": SCHEMA, **plain}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Snapshot:
        """The snapshot that ``to_dict`` wrote.

        Raises:
            ValueError: of another schema, or not a snapshot; the text names each value that is wrong.
        """
        if plain.get("schema") != SCHEMA:
            raise ValueError(f"a snapshot of schema {plain.get('schema')}, and this version reads {SCHEMA}")
        snapshot: Snapshot = _adapter().validate_python({key: plain[key] for key in plain if key != "schema"})
        return snapshot


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter  # noqa: PLC0415 (takes a moment, and only recordings need it)

    return TypeAdapter(Snapshot)
