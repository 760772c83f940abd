"""Kinds of workloads: which keys each of them needs, and which it may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmperf.model.suite import Kind, Lengths, Workload
from pytest_llmperf.suitefile.document import KeyPath
from pytest_llmperf.suitefile.draft import Draft

DEFAULT: Kind = "token-ids"

EXAMPLES: Mapping[str, object] = {
    "input_tokens": 64,
    "output_tokens": 128,
    "requests": 32,
    "path": '"${DATA}/prompts.jsonl"',
    "prefix_tokens": 32,
    "expect_prefix_hits": "[30%, 50%]",
}
"""By needed key, in the order in which they are asked for."""


@dataclass(frozen=True)
class KindKeys:
    """The keys that not every kind has.

    Attributes:
        needs: without these there is no such workload.
        takes: these may be written.
    """

    needs: frozenset[str]
    takes: frozenset[str] = frozenset()


_LENGTHS = frozenset({"requests", "input_tokens", "output_tokens"})
_FILE = frozenset({"requests", "path"})

KINDS: Mapping[Kind, KindKeys] = {
    "token-ids": KindKeys(_LENGTHS, frozenset({"vocab"})),
    "words": KindKeys(_LENGTHS, frozenset({"turns"})),
    "shared-prefix": KindKeys(_LENGTHS | {"prefix_tokens", "expect_prefix_hits"}, frozenset({"vocab", "groups"})),
    "random": KindKeys(_LENGTHS, frozenset({"prefix_tokens", "range_ratio", "rules"})),
    "custom": KindKeys(_FILE, frozenset({"output_tokens", "sha256", "oversample"})),
    "sharegpt": KindKeys(_FILE, frozenset({"output_tokens", "sha256", "oversample", "rules"})),
}

OF_SOME_KINDS = frozenset().union(*(kind.needs | kind.takes for kind in KINDS.values())) - {
    "requests",
    "expect_prefix_hits",
}
"""The keys that mean nothing to at least one kind."""

IDS: frozenset[Kind] = frozenset({"token-ids", "shared-prefix"})
"""Kinds whose prompts are token ids, which need the vocabulary and cannot be a chat."""

TEXTS_BY_TOKENIZER: frozenset[Kind] = frozenset({"random", "sharegpt"})
"""Kinds that need the model's tokenizer."""


def report_lacking(
    draft: Draft, chain: Sequence[str], values: Mapping[str, Any], axes: set[str], before: Mapping[str, set[str]]
) -> set[str]:
    """The needed keys that a workload lacks; reported unless an ancestor lacks them too, or they were written wrong."""
    lacking = set(KINDS[values["kind"]].needs) - set(values) - axes
    inherited = set().union(*(before.get(ancestor, set()) for ancestor in chain[:-1]))
    for key in (key for key in EXAMPLES if key in lacking - inherited):
        written = [("matrix", key), *(("workloads", ancestor, key) for ancestor in chain)]
        if not any(draft.is_excused(path) for path in written):
            draft.report(("workloads", chain[-1]), f"needs {key!r}, such as {key}: {EXAMPLES[key]}")
    return lacking


def report_unfit(draft: Draft, name: str, values: Mapping[str, Any], own: set[str], axes: set[str]) -> None:
    """What does not go with the kind of a workload; ``own`` are the keys that it writes itself."""
    kind: Kind = values["kind"]
    home: KeyPath = ("workloads", name)
    foreign = OF_SOME_KINDS - KINDS[kind].needs - KINDS[kind].takes
    for key in sorted(foreign & set(values)):
        inherited = "" if key in own else f"the inherited {key} "
        draft.report((*home, key if key in own else "kind"), f"{inherited}means nothing to a workload of kind {kind}")
    for key in sorted(foreign & axes):
        draft.report(("matrix", key), f"means nothing to workload {name!r} of kind {kind}; remove one of the two")
    if kind in IDS and values.get("api") == "chat":
        draft.report((*home, "api"), f"a chat cannot carry token ids, which kind {kind} sends; write kind: words")
    if kind not in IDS and kind != "words":
        for key in ("input_tokens", "output_tokens"):
            if isinstance(values.get(key), Lengths):
                draft.report((*home, key), f"must be a whole number for kind {kind}")
    if kind == "shared-prefix":
        _report_prefix(draft, home, values)
    if kind == "words" and "turns" in values:
        _report_turns(draft, home, values)


def _report_prefix(draft: Draft, home: KeyPath, values: Mapping[str, Any]) -> None:
    prefix, whole = values.get("prefix_tokens"), values.get("input_tokens")
    shortest = whole.min if isinstance(whole, Lengths) else whole
    if prefix is not None and shortest is not None and prefix >= shortest:
        draft.report((*home, "prefix_tokens"), f"{prefix} must be less than input_tokens, of which it is a part")


def _report_turns(draft: Draft, home: KeyPath, values: Mapping[str, Any]) -> None:
    if values.get("api") != "chat":
        draft.report((*home, "turns"), "a conversation needs api: chat")
    elif "expect_prefix_hits" not in values:
        draft.report(home, "needs 'expect_prefix_hits', such as expect_prefix_hits: [30%, 90%]: each turn repeats "
                     "the ones before it")  # fmt: skip


def report_without_files(draft: Draft, arm: str, workload: Workload, name: str) -> None:
    """What a workload, written as ``name``, needs of the files of a model for which the suite names none."""
    way = f"write path, the folder of the model's files, in the model of arm {arm!r}"
    if workload.kind in TEXTS_BY_TOKENIZER:
        draft.report(("workloads", name, "kind"), f"kind {workload.kind} needs the model's tokenizer; {way}")
    elif workload.kind in IDS and workload.vocab is None:
        draft.report(("workloads", name, "kind"), f"kind {workload.kind} needs the size of the model's vocabulary; "
                     f"{way}, or vocab: N here")  # fmt: skip
