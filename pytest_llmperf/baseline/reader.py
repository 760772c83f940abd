"""A baseline file's text, read strictly: every mistake at once, each with its line, its value and the way out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pytest_llmperf.baseline.acceptance import rule
from pytest_llmperf.baseline.baseline import Accepted, Baseline
from pytest_llmperf.checks.comparability import ANY_HARDWARE, REFUSE, TIMING_ONLY
from pytest_llmperf.errors import BaselineError, Mistake
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.registry import did_you_mean

KEYS = ("kind", "case", "workload", "refuse_unless", "environment", "accepted", "sessions", "metrics")
OPTIONAL_KEYS = ("machine",)
ACCEPTED_KEYS = ("on", "commit", "why")

MAX_BYTES = 256 << 10
"""A baseline of hundreds of sessions has some ten thousand bytes; reading a megabyte takes half a minute."""

SMALLEST_RATIO, LARGEST = 1e-6, 1e12
"""No unit of ours gives a ratio metric a smaller value, or any metric a larger one; squares of both stay finite."""

_RESTORE = "restore the file from its last commit"

Groups = tuple[tuple[float, ...], ...]


def parse(text: str, file: str) -> Baseline:
    """The baseline that ``text`` holds; ``file`` names it in errors.

    Raises:
        BaselineError: all mistakes, one per line, each as ``file:line: key: what is wrong; what would be right``.
    """
    if len(text) > MAX_BYTES:
        raise BaselineError(f"{file}:1: is larger than {MAX_BYTES >> 10} KiB, so it is no baseline; {_RESTORE}")
    try:
        root = yaml.compose(text, Loader=_PlainLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BaselineError(f"{file}:{line}: not YAML: {error.problem}; {_RESTORE}") from error
    except yaml.YAMLError as error:
        raise BaselineError(f"{file}:1: not YAML: {error}; {_RESTORE}") from error
    except RecursionError:
        raise BaselineError(f"{file}:1: lists or mappings are nested too deeply; {_RESTORE}") from None
    if root is None:
        raise BaselineError(f"{file}:1: the file is empty; restore it from its last commit, or remove it")
    reader = _Reader(file)
    baseline = reader.baseline(root)
    if baseline is None:
        raise BaselineError("\n".join(str(mistake) for mistake in sorted(reader.mistakes)))
    return baseline


def load(path: Path) -> Baseline:
    """The baseline in a file of which nothing is known yet.

    Raises:
        BaselineError: it cannot be read, is no UTF-8, is too large, or see ``parse``.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1).decode()
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BaselineError(f"{path}:1: is no text: byte {error.start} is no UTF-8; {_RESTORE}") from None
    return parse(text, str(path))


class _PlainLoader(yaml.SafeLoader):
    """Without aliases: a few thousand of them make a small file stand for billions of values."""

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "a baseline has no aliases (*)", mark)
        return super().compose_node(parent, index)


class _Reader:
    """Walks the nodes and collects mistakes; what it returns is only used when there is none."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.mistakes: list[Mistake] = []

    def wrong(self, node: Node, path: str, message: str) -> None:
        self.mistakes.append(Mistake(self.file, node.start_mark.line + 1, path, message))

    def baseline(self, root: Node) -> Baseline | None:
        nodes = self.mapping(root, "", (*KEYS, *OPTIONAL_KEYS), KEYS)
        if "kind" in nodes and self.text(nodes["kind"], "kind") != "measured":
            self.wrong(nodes["kind"], "kind", f"{self.text(nodes['kind'], 'kind')!r} is unknown; it must be 'measured'")
        workload = self.text(nodes["workload"], "workload") if "workload" in nodes else ""
        if "workload" in nodes and not workload.startswith("sha256:"):
            self.wrong(nodes["workload"], "workload", f"{workload!r} is no digest; it must begin with 'sha256:'")
        sessions = self.sessions(nodes["sessions"]) if "sessions" in nodes else ()
        baseline = Baseline(
            case=self.text(nodes["case"], "case") if "case" in nodes else "",
            workload=workload,
            refuse_unless=self.refuse_unless(nodes["refuse_unless"]) if "refuse_unless" in nodes else {},
            machine=self.facts(nodes["machine"], "machine") if "machine" in nodes else {},
            environment=self.facts(nodes["environment"], "environment") if "environment" in nodes else {},
            accepted=self.accepted(nodes["accepted"])
            if "accepted" in nodes
            else Accepted(on=date.min, commit="", why=""),
            sessions=sessions,
            metrics=self.metrics(nodes["metrics"], sessions) if "metrics" in nodes else {},
        )
        return None if self.mistakes else baseline

    def mapping(self, node: Node, path: str, known: Iterable[str] | None, needed: Iterable[str]) -> dict[str, Node]:
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
            self.wrong(
                node, path, f"{', '.join(missing)} missing; restore from the last commit, or accept a new baseline"
            )
        return found

    def text(self, node: Node, path: str) -> str:
        """A scalar as written; YAML's guesses at numbers and dates are not wanted."""
        if isinstance(node, ScalarNode) and node.value.strip():
            return str(node.value)
        self.wrong(node, path, "must be a text that is not empty")
        return ""

    def facts(self, node: Node, path: str) -> dict[str, str]:
        return {key: self.text(value, f"{path}.{key}") for key, value in self.mapping(node, path, None, ()).items()}

    def refuse_unless(self, node: Node) -> dict[str, str]:
        path, keys = "refuse_unless", [key for key in REFUSE if key != "workload"]
        found = {key: self.text(value, f"{path}.{key}") for key, value in self.mapping(node, path, keys, ()).items()}
        counts = found.get("hardware") == ANY_HARDWARE
        missing = [key for key in keys if key not in found and not (counts and key in TIMING_ONLY)]
        if missing:
            self.wrong(node, path, f"{', '.join(missing)} missing; without it anything would count as comparable")
        return found

    def accepted(self, node: Node) -> Accepted:
        found = self.mapping(node, "accepted", ACCEPTED_KEYS, ACCEPTED_KEYS)
        texts = {key: self.text(value, f"accepted.{key}") for key, value in found.items()}
        day = date.min
        if texts.get("on"):
            try:
                day = date.fromisoformat(texts["on"])
            except ValueError:
                self.wrong(found["on"], "accepted.on", f"{texts['on']!r} is no date; write it as 2026-11-30")
        return Accepted(on=day, commit=texts.get("commit", ""), why=texts.get("why", ""))

    def sessions(self, node: Node) -> tuple[str, ...]:
        if not isinstance(node, SequenceNode) or not node.value:
            self.wrong(node, "sessions", "must be a list with one label per server start")
            return ()
        labels = tuple(self.text(each, "sessions") for each in node.value)
        seen: set[str] = set()
        for each, label in zip(node.value, labels, strict=True):
            if label and label in seen:
                self.wrong(each, "sessions", f"{label!r} is there twice; every server start has its own label")
            seen.add(label)
        return labels

    def metrics(self, node: Node, sessions: tuple[str, ...]) -> dict[str, Groups]:
        nodes = self.mapping(node, "metrics", METRICS, ())
        if isinstance(node, MappingNode) and not node.value:
            self.wrong(node, "metrics", "is empty; a baseline needs at least one metric")
        found = {name: self.groups(value, name, sessions) for name, value in nodes.items()}
        shapes = {name: [len(group) for group in groups] for name, groups in found.items() if groups}
        first = next(iter(shapes), None)
        for name, shape in shapes.items():
            if first is not None and shape != shapes[first]:
                self.wrong(nodes[name], f"metrics.{name}", f"{shape} runs by session, but {first} has {shapes[first]}")
        return found

    def groups(self, node: Node, name: str, sessions: tuple[str, ...]) -> Groups:
        path = f"metrics.{name}"
        groups = node.value if isinstance(node, SequenceNode) else []
        if not groups or not all(isinstance(group, SequenceNode) and group.value for group in groups):
            self.wrong(
                node, path, "must be a list of sessions, each a list of its runs' values: [[753.7, 752.9], [754.8]]"
            )
            return ()
        if sessions and len(groups) != len(sessions):
            self.wrong(node, path, f"{len(groups)} sessions, but 'sessions' names {len(sessions)}; one list per label")
        return tuple(tuple(self.number(each, name) for each in group.value) for group in groups)

    def number(self, node: Node, name: str) -> float:
        path, scale = f"metrics.{name}", METRICS[name].scale
        written = node.value if isinstance(node, ScalarNode) and node.style is None else None
        try:
            value = float(written) if isinstance(written, str) else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or (scale == "ratio" and value <= 0):
            shown = node.value if isinstance(node, ScalarNode) else "a list"
            self.wrong(node, path, f"{shown!r} cannot be a value; {rule(scale)}")
        elif abs(value) > LARGEST or (scale == "ratio" and value < SMALLEST_RATIO):
            bounds = f"{SMALLEST_RATIO:g} to {LARGEST:g}" if scale == "ratio" else f"at most {LARGEST:g}"
            self.wrong(node, path, f"{written!r} cannot be measured; a value is {bounds}. {_RESTORE.capitalize()}")
        return value
