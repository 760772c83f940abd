"""A command: what a launcher starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to start.

    Attributes:
        argv: a list, never a shell string.
        env: variables beside the inherited environment.
        cores: of this machine, those that it may run on; () for all.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
