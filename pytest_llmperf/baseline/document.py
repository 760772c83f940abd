"""A file of the store as a tree of YAML nodes, read strictly: every mistake with its line and the way out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from pytest_llmperf.baseline.acceptance import rule
from pytest_llmperf.errors import BaselineError, Mistake
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.registry import did_you_mean

MAX_BYTES = 256 << 10
"""A baseline of hundreds of sessions has some ten thousand bytes; reading a megabyte takes half a minute."""

SMALLEST_RATIO, LARGEST = 1e-6, 1e12
"""No unit of ours gives a ratio metric a smaller value, or any metric a larger one; squares of both stay finite."""

RESTORE = "restore the file from its last commit"


def text_of(path: Path) -> str:
    """The text of a file of which nothing is known yet.

    Raises:
        BaselineError: there is none, or see ``text_if_any``.
    """
    text = text_if_any(path)
    if text is None:
        raise BaselineError(f"{path}: cannot be read: there is no such file")
    return text


def text_if_any(path: Path) -> str | None:
    """The text of a file, None where there is none; of one that is too large no more than needed is read.

    Raises:
        BaselineError: it cannot be read, is no UTF-8, or is too large.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise _too_large(str(path))
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BaselineError(f"{path}:1: is no text: byte {error.start} is no UTF-8; {RESTORE}") from None


def _too_large(file: str) -> BaselineError:
    return BaselineError(f"{file}:1: is larger than {MAX_BYTES >> 10} KiB, so it is no baseline; {RESTORE}")


def compose(text: str, file: str) -> Node:
    """The root of the tree; ``file`` names it in errors.

    Raises:
        BaselineError: no YAML, nothing, too much of it, or something that a small text makes large.
    """
    if len(text) > MAX_BYTES:
        raise _too_large(file)
    try:
        root = yaml.compose(text, Loader=_PlainLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BaselineError(f"{file}:{line}: not YAML: {error.problem}; {RESTORE}") from error
    except yaml.YAMLError as error:
        raise BaselineError(f"{file}:1: not YAML: {error}; {RESTORE}") from error
    except RecursionError:
        raise BaselineError(f"{file}:1: lists or mappings are nested too deeply; {RESTORE}") from None
    if root is None:
        raise BaselineError(f"{file}:1: the file is empty; restore it from its last commit, or remove it")
    return root


class _PlainLoader(yaml.SafeLoader):
    """Without aliases: a few thousand of them make a small file stand for billions of values."""

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "a baseline has no aliases (*)", mark)
        return super().compose_node(parent, index)


class Document:
    """Reads nodes and collects mistakes; what its methods return is only to be used when there is none."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.mistakes: list[Mistake] = []

    def check(self) -> None:
        """Raise BaselineError with all mistakes in the order of their lines, where there is any."""
        if self.mistakes:
            raise BaselineError("\n".join(str(mistake) for mistake in sorted(self.mistakes)))

    def wrong(self, node: Node, path: str, message: str) -> None:
        """Note a mistake."""
        self.mistakes.append(Mistake(self.file, node.start_mark.line + 1, path, message))

    def mapping(
        self, node: Node, path: str, known: Iterable[str] | None, needed: Iterable[str], *, remedy: str = ""
    ) -> dict[str, Node]:
        """Value nodes by key; unknown, repeated and missing keys are mistakes. ``known`` None allows any key."""
        if not isinstance(node, MappingNode):
            self.wrong(node, path, f"must be a mapping with {', '.join(needed) or 'keys'}")
            return {}
        found: dict[str, Node] = {}
        for key_node, value in node.value:
            key = self.text(key_node, path)
            where = f"{path}.{key}" if path else key
            if known is not None and key not in known:
                noun = "metric" if known is METRICS else "key"
                self.wrong(key_node, where, f"unknown {noun}{did_you_mean(key, known)}")
            elif key in found:
                self.wrong(key_node, where, "is there twice; keep one of them")
            else:
                found[key] = value
        missing = [key for key in needed if key not in found]
        if missing:
            way_out = remedy or "restore from the last commit, or accept a new baseline"
            self.wrong(node, path, f"{', '.join(missing)} missing; {way_out}")
        return found

    def text(self, node: Node, path: str) -> str:
        """A scalar as written; YAML's guesses at numbers and dates are not wanted."""
        if isinstance(node, ScalarNode) and node.value.strip():
            return str(node.value)
        self.wrong(node, path, "must be a text that is not empty")
        return ""

    def kind(self, node: Node | None, right: str) -> None:
        """The file's kind must be the one of its place."""
        if node is not None and (found := self.text(node, "kind")) != right:
            ends = "ends" if right == "published" else "does not end"
            self.wrong(node, "kind", f"{found!r} must be {right!r}: the file's name {ends} in '.published.yaml'")

    def day(self, node: Node, path: str) -> date:
        """A date as ISO 8601 has it."""
        written = self.text(node, path)
        try:
            return date.fromisoformat(written)
        except ValueError:
            if written:
                self.wrong(node, path, f"{written!r} is no date; write it as 2026-11-30")
            return date.min

    def plain(self, node: Node) -> str:
        """A scalar without quotes, which alone may be a number; "" for anything else."""
        return str(node.value) if isinstance(node, ScalarNode) and node.style is None else ""

    def count(self, node: Node, path: str, *, least: int, most: int | None = None) -> int:
        """A whole number within bounds."""
        written = self.plain(node)
        value = int(written) if written.isascii() and written.isdigit() and len(written) < 10 else -1  # noqa: PLR2004
        if value < least or (most is not None and value > most):
            bounds = f"{least} or more" if most is None else f"{least} to {most}"
            self.wrong(node, path, f"{_shown(node)} must be a whole number, {bounds}")
            return least
        return value

    def value(self, node: Node, path: str, metric: str) -> float:
        """One value of a metric, such as a run could have."""
        scale, written = METRICS[metric].scale, self.plain(node)
        try:
            value = float(written)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or (scale == "ratio" and value <= 0):
            self.wrong(node, path, f"{_shown(node)} cannot be a value; {rule(scale)}")
        elif abs(value) > LARGEST or (scale == "ratio" and value < SMALLEST_RATIO):
            bounds = f"{SMALLEST_RATIO:g} to {LARGEST:g}" if scale == "ratio" else f"at most {LARGEST:g}"
            self.wrong(node, path, f"{written!r} cannot be measured; a value is {bounds}. {RESTORE.capitalize()}")
        return value


def _shown(node: Node) -> str:
    return repr(str(node.value) if isinstance(node, ScalarNode) else "a list")
