"""Numbers that documents publish for one case: a file of its own beside the measured one, written by people.

::

    kind: published
    case: vllm/random-4000-200
    source: {document: H200 report, table: vLLM 0.11.0 TP8, url: https://…}          # table and url where there are any
    conditions: {hardware: 8x H200 SXM, versions: vLLM 0.11.0, load: 500 prompts of 4000/200 at once}
    expires: 2027-11-30
    metrics:
      output_throughput: {value: 753.67, definition: output tokens / duration}
      mean_tpot_ms: {value: 164.23, definition: unknown, source: {table: appendix}}  # else as above
      tok_s_per_user: [{value: 253, …}, {value: 207, …}]                             # where documents differ
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from yaml.nodes import MappingNode, Node, SequenceNode

from pytest_llmperf.baseline.document import Document, compose, text_of
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.published import Published

SUFFIX = ".published"
"""Between the name of a case and ``.yaml``."""

KEYS = ("kind", "case", "source", "conditions", "expires", "metrics")
ENTRY_KEYS = ("value", "definition", "source", "conditions", "expires")
SOURCE_KEYS = ("document", "table", "url")
CONDITION_KEYS = ("hardware", "versions", "load")

_REMEDY = "add it, as 'unknown' where the document does not say"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One file: a case, and the numbers in the order of the file."""

    case: str
    numbers: tuple[Published, ...]


def parse(text: str, file: str) -> Publication:
    """The numbers that ``text`` holds; ``file`` names it in errors.

    Raises:
        BaselineError: all mistakes, one per line, each as ``file:line: key: what is wrong; what would be right``.
    """
    root = compose(text, file)
    reader = _Reader(file)
    found = reader.publication(root)
    reader.check()
    return found


def load(path: Path) -> Publication:
    """Those of a file of which nothing is known yet.

    Raises:
        BaselineError: it cannot be read, is no UTF-8, is too large, or see ``parse``.
    """
    return parse(text_of(path), str(path))


def renamed(text: str, file: str, case: str) -> str:
    """The text of a file as that of another case, and nothing else of it changed: it was written by a person.

    Raises:
        BaselineError: see ``parse``.
    """
    parse(text, file)
    root = compose(text, file)
    keys = root.value if isinstance(root, MappingNode) else ()
    old = next(value for key, value in keys if key.value == "case")
    return text[: old.start_mark.index] + case + text[old.end_mark.index :]


class _Reader(Document):
    """The parts of a publication. Source and conditions of a metric are those of the file but for what it says."""

    def publication(self, root: Node) -> Publication:
        nodes = self.mapping(root, "", KEYS, KEYS, remedy=_REMEDY)
        self.kind(nodes.get("kind"), "published")
        source = self.texts(nodes["source"], "source", SOURCE_KEYS, ("document",)) if "source" in nodes else {}
        conditions = (
            self.texts(nodes["conditions"], "conditions", CONDITION_KEYS, CONDITION_KEYS)
            if "conditions" in nodes
            else {}
        )
        expires = self.day(nodes["expires"], "expires") if "expires" in nodes else date.min
        metrics = self.mapping(nodes["metrics"], "metrics", METRICS, ()) if "metrics" in nodes else {}
        if "metrics" in nodes and isinstance(nodes["metrics"], MappingNode) and not nodes["metrics"].value:
            self.wrong(nodes["metrics"], "metrics", "is empty; a published number needs a metric")
        return Publication(
            case=self.text(nodes["case"], "case") if "case" in nodes else "",
            numbers=tuple(
                self.number(entry, name, source, conditions, expires)
                for name, node in metrics.items()
                for entry in self.entries(node, name)
            ),
        )

    def texts(self, node: Node, path: str, known: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, str]:
        found = self.mapping(node, path, known, needed, remedy=_REMEDY)
        return {key: self.text(value, f"{path}.{key}") for key, value in found.items()}

    def entries(self, node: Node, name: str) -> Iterator[Node]:
        if not isinstance(node, SequenceNode):
            yield node
        elif node.value:
            yield from node.value
        else:
            self.wrong(node, f"metrics.{name}", "is an empty list; write {value: …, definition: …}")

    def number(
        self, node: Node, name: str, source: Mapping[str, str], conditions: Mapping[str, str], expires: date
    ) -> Published:
        path = f"metrics.{name}"
        found = self.mapping(node, path, ENTRY_KEYS, ("value", "definition"), remedy=_REMEDY)
        if "source" in found:
            source = {**source, **self.texts(found["source"], f"{path}.source", SOURCE_KEYS, ())}
        if "conditions" in found:
            conditions = {**conditions, **self.texts(found["conditions"], f"{path}.conditions", CONDITION_KEYS, ())}
        return Published(
            metric=name,
            value=self.value(found["value"], f"{path}.value", name) if "value" in found else 0.0,
            source=", ".join(source[key] for key in SOURCE_KEYS if key in source),
            conditions="; ".join(f"{key} {conditions[key]}" for key in CONDITION_KEYS if key in conditions),
            definition=self.text(found["definition"], f"{path}.definition") if "definition" in found else "",
            expires=self.day(found["expires"], f"{path}.expires") if "expires" in found else expires,
        )
