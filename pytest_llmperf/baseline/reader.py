"""A baseline file's text, read strictly: every mistake at once, each with its line, its value and the way out."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from yaml.nodes import MappingNode, Node, SequenceNode

from pytest_llmperf.baseline import noise
from pytest_llmperf.baseline.baseline import Accepted, Baseline
from pytest_llmperf.baseline.document import RESTORE, Document, compose, text_of
from pytest_llmperf.checks.comparability import ANY_HARDWARE, OUTPUT, REFUSE, TIMING_ONLY, tokens_of
from pytest_llmperf.metrics.definitions import METRICS

KEYS = ("kind", "case", "workload", "refuse_unless", "environment", "accepted", "sessions", "metrics")
OPTIONAL_KEYS = ("machine", "calibration")
ACCEPTED_KEYS = ("on", "commit", "why")

Groups = tuple[tuple[float, ...], ...]


def parse(text: str, file: str) -> Baseline:
    """The baseline that ``text`` holds; ``file`` names it in errors.

    Raises:
        BaselineError: all mistakes, one per line, each as ``file:line: key: what is wrong; what would be right``.
    """
    root = compose(text, file)
    reader = _Reader(file)
    baseline = reader.baseline(root)
    reader.check()
    return baseline


def load(path: Path) -> Baseline:
    """The baseline in a file of which nothing is known yet.

    Raises:
        BaselineError: it cannot be read, is no UTF-8, is too large, or see ``parse``.
    """
    return parse(text_of(path), str(path))


class _Reader(Document):
    """The parts of a baseline."""

    def baseline(self, root: Node) -> Baseline:
        nodes = self.mapping(root, "", (*KEYS, *OPTIONAL_KEYS), KEYS)
        self.kind(nodes.get("kind"), "measured")
        workload = self.text(nodes["workload"], "workload") if "workload" in nodes else ""
        if "workload" in nodes and not workload.startswith("sha256:"):
            self.wrong(nodes["workload"], "workload", f"{workload!r} is no digest; it must begin with 'sha256:'")
        sessions = self.sessions(nodes["sessions"]) if "sessions" in nodes else ()
        metrics = self.metrics(nodes["metrics"], sessions) if "metrics" in nodes else {}
        calibration = nodes.get("calibration")
        return Baseline(
            case=self.text(nodes["case"], "case") if "case" in nodes else "",
            workload=workload,
            refuse_unless=self.refuse_unless(nodes["refuse_unless"]) if "refuse_unless" in nodes else {},
            machine=self.facts(nodes["machine"], "machine") if "machine" in nodes else {},
            environment=self.environment(nodes["environment"]) if "environment" in nodes else {},
            accepted=self.accepted(nodes["accepted"])
            if "accepted" in nodes
            else Accepted(on=date.min, commit="", why=""),
            calibration=None if calibration is None else noise.read(self, calibration, metrics),
            sessions=sessions,
            metrics=metrics,
        )

    def facts(self, node: Node, path: str) -> dict[str, str]:
        return {key: self.text(value, f"{path}.{key}") for key, value in self.mapping(node, path, None, ()).items()}

    def environment(self, node: Node) -> dict[str, str]:
        path, nodes = "environment", self.mapping(node, "environment", None, ())
        found = {key: self.text(value, f"{path}.{key}") for key, value in nodes.items()}
        if found.get(OUTPUT) and tokens_of(found[OUTPUT]) is None:
            self.wrong(nodes[OUTPUT], f"{path}.{OUTPUT}", f"{found[OUTPUT]!r} must be a number of tokens, more than 0;"
                       f" {RESTORE}")  # fmt: skip
        return found

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
        day = self.day(found["on"], "accepted.on") if "on" in found else date.min
        texts = {key: self.text(found[key], f"accepted.{key}") for key in ("commit", "why") if key in found}
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
        return tuple(tuple(self.value(each, path, name) for each in group.value) for group in groups)
