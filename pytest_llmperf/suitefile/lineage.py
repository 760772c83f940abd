"""``extends``: the ancestors of an entry, one parent each."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_llmperf.registry import did_you_mean
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.keys import ArmKeys, WorkloadKeys


def lineages(
    draft: Draft, section: str, entries: Mapping[str, ArmKeys] | Mapping[str, WorkloadKeys]
) -> dict[str, list[str]]:
    """By entry, the names from its oldest ancestor down to itself.

    An entry whose ancestors cannot all be followed is left out; what is wrong is reported once, where it is written.
    """
    parents = {name: entry.extends for name, entry in entries.items()}
    written = draft.names(section)
    found: dict[str, list[str]] = {}
    for name, parent in parents.items():
        if parent is not None and parent not in written:
            others = [other for other in written if other != name]
            draft.report((section, name, "extends"), f"{parent!r} is not in {section}{did_you_mean(parent, others)}")
        chain = _ancestors(name, parents)
        beyond = parents.get(chain[-1])
        if beyond is None and chain[-1] in parents:
            found[name] = chain[::-1]
        elif beyond == name and name == min(chain, key=list(parents).index):
            way = " -> ".join([*chain, name])
            draft.report((section, name, "extends"), f"{way}: an entry cannot extend itself; remove one extends")
    return found


def _ancestors(name: str, parents: Mapping[str, str | None]) -> list[str]:
    """``name`` and its ancestors, up to one that has no parent, is not there, or would come twice."""
    chain = [name]
    while (parent := parents.get(chain[-1])) is not None and parent not in chain:
        chain.append(parent)
    return chain
