"""A document: the YAML of a suite file as plain values that remember their lines.

Scalars follow the core schema of YAML 1.2, as editors do: ``on``, ``no`` and ``2026-11-30`` are text, ``1e3`` is a
number. There are no tags and no merge keys: a suite file holds facts, and ``extends`` is how one entry builds on
another. Depth and size are bounded, so that an alias that contains itself ends in a message.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from pytest_llmperf.errors import Mistake, SuiteError

KeyPath = tuple[str | int, ...]
"""Keys from the top of the file downwards; whole numbers are places in a list."""

MAX_DEPTH = 20
MAX_NODES = 100_000

_TAG = "tag:yaml.org,2002:"
_SCALARS: tuple[tuple[str, str, str], ...] = (
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]{1,18}", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
)  # A whole number of more digits than 18 reads as a float: no count in a suite is that large.
_VALUES: dict[str, Callable[[str], Any]] = {
    _TAG + "null": lambda _: None,
    _TAG + "bool": lambda text: text.lower() == "true",
    _TAG + "int": int,
    _TAG + "float": float,
    _TAG + "str": str,
}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml is not on every machine
    """Reads nodes only; resolves scalars by the core schema."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's name and shape)


for _name, _pattern, _first in _SCALARS:
    _Loader.add_implicit_resolver(
        _TAG + _name, re.compile(rf"(?:{_pattern})\Z"), [*_first, *([""] * (_name == "null"))]
    )


@dataclass(frozen=True)
class Document:
    """A parsed file.

    Attributes:
        data: the top mapping, as dicts, lists and scalars.
        mistakes: what is wrong with the YAML itself and did not stop the reading, such as keys written twice.
    """

    file: str
    data: dict[str, Any]
    mistakes: list[Mistake]
    _root: yaml.Node

    def line(self, path: KeyPath) -> int:
        """Line of the key that ``path`` names, or of the closest entry above it that is written."""
        node, line = self._root, self._root.start_mark.line
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            node, line = found
        return line + 1


def parse(text: str, file: str) -> Document:
    """The text of a suite file as a document.

    Raises:
        SuiteError: not YAML, or no mapping at the top; nothing more can be said of such a file.
    """
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SuiteError([Mistake(file, line, "", f"not valid YAML: {error.reason}")]) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.problem, error.context) if part)
        raise SuiteError([Mistake(file, mark.line + 1 if mark else 1, "", f"not valid YAML: {problem}")]) from None
    except RecursionError:
        raise SuiteError([Mistake(file, 1, "", "not valid YAML: nested too deeply")]) from None
    if not isinstance(root, yaml.MappingNode):
        found = "is empty" if root is None else "holds no mapping"
        line = 1 if root is None else root.start_mark.line + 1
        raise SuiteError([Mistake(file, line, "", f"{found}; a suite starts with a line such as 'suite: my-suite'")])
    reader = _Reader(file)
    return Document(file, reader.value(root, ()), reader.mistakes, root)


def parse_value(text: str) -> Any:
    """One value in YAML, as on a command line.

    Raises:
        ValueError: it is not valid YAML, or uses what a suite file may not.
    """
    try:
        node = yaml.compose(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError):
        raise ValueError("not a valid YAML value") from None
    if node is None:
        return None
    reader = _Reader("")
    value = reader.value(node, ())
    if reader.mistakes:
        raise ValueError(reader.mistakes[0].message)
    return value


def dotted(path: KeyPath) -> str:
    """``engines.vllm.args[1]``: a path as people read it."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


@dataclass
class _Reader:
    """Turns nodes into plain values."""

    file: str
    mistakes: list[Mistake] = field(default_factory=list)
    nodes: int = 0

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self.nodes += 1
        if len(path) > MAX_DEPTH or self.nodes > MAX_NODES:
            limit = f"more than {MAX_NODES} values" if self.nodes > MAX_NODES else f"more than {MAX_DEPTH} levels deep"
            line = node.start_mark.line + 1
            raise SuiteError([*self.mistakes, Mistake(self.file, line, dotted(path[:3]), f"{limit}; write less")])
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, place)) for place, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._report(line, path, "a key must be one word, not a list or a mapping")
                continue
            key = str(key_node.value)
            if key in lines:
                self._report(line, (*path, key), f"written twice, first on line {lines[key]}; remove one")
                continue
            lines[key] = line
            mapping[key] = self.value(value_node, (*path, key))
        return mapping

    def _scalar(self, node: yaml.Node, path: KeyPath) -> Any:
        value = _VALUES.get(node.tag)
        if value is None:
            self._report(node.start_mark.line + 1, path, f"tag {node.tag!r}: a suite file has no tags; remove it")
            return None
        try:
            return value(node.value)
        except ValueError:
            tag = node.tag.removeprefix(_TAG)
            self._report(node.start_mark.line + 1, path, f"{node.value!r} is no {tag}; remove the tag")
            return None

    def _report(self, line: int, path: KeyPath, message: str) -> None:
        self.mistakes.append(Mistake(self.file, line, dotted(path), message))


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, int] | None:
    """The node under a key or at a place, with the line (from 0) where it is written; None when there is none."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            if key_node.value == step:
                return value_node, key_node.start_mark.line
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step].start_mark.line
    return None
