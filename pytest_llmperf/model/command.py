"""A command: what a launcher starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """``argv`` as a list (never a shell string), and variables beside the inherited environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
