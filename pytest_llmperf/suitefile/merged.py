"""Merged keys: those of several mappings, later ones over earlier ones, and where each was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_llmperf.suitefile.document import KeyPath


@dataclass
class Merged:
    """The keys of an arm or of its model.

    Attributes:
        homes: the mappings, oldest ancestor first.
        values: what holds in the end; lists replace. Of an arm, ``args+`` appends to ``args``, ``env`` and ``expect``
            are merged by name; a model has no such keys, and whatever it says under them is the adapter's to refuse.
        origins: the place of each key.
    """

    of_arm: bool

    homes: list[KeyPath] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, KeyPath] = field(default_factory=dict)

    def add(self, home: KeyPath, keys: Mapping[str, Any]) -> None:
        """Put the keys written at ``home`` over those so far."""
        self.homes.append(home)
        for key, value in keys.items():
            if key == "args+" and self.of_arm:
                self.values["args"] = [*self.values.get("args", ()), *value]
            elif key in {"env", "expect"} and self.of_arm:
                self.values[key] = {**self.values.get(key, {}), **value}
            else:
                self.values[key] = value
                self.origins[key] = (*home, key)

    def needs(self, path: KeyPath) -> bool:
        """Whether what was taken out at ``path`` would hold here: nothing newer is in its place."""
        *above, key = path
        home = tuple(above)
        if home not in self.homes:
            return False
        origin = self.origins.get(str(key))
        return origin is None or self.homes.index(origin[:-1]) < self.homes.index(home)

    def without(self, common: set[str]) -> dict[str, Any]:
        """The keys that belong to the engine's adapter."""
        return {key: value for key, value in self.values.items() if key not in common}
