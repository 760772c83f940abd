"""A draft: a suite file on its way to a suite, with all mistakes found so far.

A value with a mistake is taken out, so that the rest can still be checked; what was taken out is remembered, so that
nothing is called missing that was only written wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pytest_llmperf.errors import Mistake, SuiteError
from pytest_llmperf.suitefile.document import Document, KeyPath, dotted


class Draft:
    """The data of one suite file while it is being checked; reporting a mistake is its only side effect.

    Attributes:
        file: as it is shown in messages.
        data: what is written, after overrides, without what was taken out.
        overrides: those that applied, as given on the command line.
        unset: mistakes that only count for who needs the value, by its path: variables that are not set here.
    """

    def __init__(self, document: Document) -> None:
        self.file = document.file
        self.data = document.data
        self.overrides: dict[str, str] = {}
        self.unset: dict[KeyPath, list[Mistake]] = {}
        self._document = document
        self._mistakes = dict.fromkeys(document.mistakes)
        self._wrong: set[KeyPath] = set()
        self._excused: set[KeyPath] = set()
        self._overridden: dict[KeyPath, str] = {}

    def override(self, path: KeyPath, key: str, text: str, value: Any) -> None:
        """Put ``value`` at ``path``, because of ``--llmperf-set key=text``; makes the mappings above it."""
        target = self.data
        for step in path[:-1]:
            if not isinstance(target.get(str(step)), dict):
                target[str(step)] = {}
            target = target[str(step)]
        target[str(path[-1])] = value
        self.overrides[key] = text
        self._overridden[path] = f"{key}={text}"

    def put(self, path: KeyPath, value: Any) -> None:
        """Replace a value that is written."""
        target: Any = self.data
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = value

    def line(self, path: KeyPath) -> int:
        """Where ``path``, or the closest entry above it, is written."""
        return self._document.line(path)

    def report(self, path: KeyPath, message: str) -> KeyPath:
        """Note a mistake at ``path``, or at the closest entry above it that is written; returns which it was."""
        written = self._written(path)
        self._wrong.add(written)
        self._mistakes[self._mistake(written, message)] = None
        return written

    def defer(self, path: KeyPath, messages: list[str]) -> None:
        """Note what is wrong with a value as mistakes of those who need it, and take it out."""
        self.unset[path] = [self._mistake(path, message) for message in messages]
        self.remove(path)

    def remove(self, path: KeyPath) -> None:
        """Take out a value that ``report`` returned; with an item of a list goes the list."""
        *above, name = _without_places(path)
        self.excuse((*above, name))
        target: Any = self.data
        for step in above:
            target = _inside(target, step)
        if isinstance(target, dict):
            target.pop(name, None)

    def excuse(self, path: KeyPath) -> None:
        """Never call ``path`` missing: it was written, only wrongly."""
        self._excused.add(path)

    def is_excused(self, path: KeyPath) -> bool:
        """Whether ``path`` or an entry above it was taken out or excused."""
        return any(path[: len(excused)] == excused for excused in self._excused)

    def has_lost(self, path: KeyPath) -> bool:
        """Whether something right below ``path`` was taken out."""
        return any(excused[:-1] == path for excused in self._excused)

    def is_wrong(self, path: KeyPath) -> bool:
        """Whether a mistake was found at ``path`` or below it."""
        return any(wrong[: len(path)] == path for wrong in self._wrong)

    def names(self, section: str) -> list[str]:
        """The names that were written in a section, those of wrong entries included."""
        written = self.data.get(section)
        taken_out = [str(path[1]) for path in self._excused if len(path) == 2 and path[0] == section]  # noqa: PLR2004
        return [*(written if isinstance(written, dict) else ()), *taken_out]

    def values(self) -> list[tuple[KeyPath, Any]]:
        """All scalars with their paths."""
        return list(_scalars((), self.data))

    def finish(self, also: Iterable[Mistake] = ()) -> None:
        """Raise all mistakes, if there are any; then with ``also``, which are none by themselves.

        Raises:
            SuiteError: there are.
        """
        if self._mistakes:
            raise SuiteError(list(dict.fromkeys([*self._mistakes, *also])))

    def _mistake(self, written: KeyPath, message: str) -> Mistake:
        override = self._override_of(written)
        return Mistake(self.file, 0 if override else self.line(written), dotted(written), message, override)

    def _override_of(self, path: KeyPath) -> str:
        """The override that put ``path`` or an entry above it there, or ""."""
        above = (path[:depth] for depth in range(len(path), 0, -1))
        return next((self._overridden[entry] for entry in above if entry in self._overridden), "")

    def _written(self, path: KeyPath) -> KeyPath:
        """The longest beginning of ``path`` that exists in the data."""
        value: Any = self.data
        for depth, step in enumerate(path):
            value = _inside(value, step)
            if value is _NOTHING:
                return path[:depth]
        return path


_NOTHING = object()


def _inside(value: Any, step: str | int) -> Any:
    """What is under a key or at a place; ``_NOTHING`` where there is none."""
    if isinstance(step, int):
        return value[step] if isinstance(value, list) and step < len(value) else _NOTHING
    return value.get(step, _NOTHING) if isinstance(value, dict) else _NOTHING


def _without_places(path: KeyPath) -> KeyPath:
    """Up to the last key: the places behind it belong to one list, or to lists in lists."""
    last = next(depth for depth in range(len(path), 0, -1) if isinstance(path[depth - 1], str))
    return path[:last]


def _scalars(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _scalars((*path, key), inner)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _scalars((*path, place), inner)
    else:
        yield path, value
