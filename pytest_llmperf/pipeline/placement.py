"""Placement: which cores of this machine are the client's while an engine of ours has the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

FEWEST_CORES = 4
"""With fewer, a core that is kept for the client costs the engine more than a shared one costs the client."""

MOST_CLIENT_CORES = 8
"""Read 160,000 chunks a second without lag: more than one node's engines send."""

_CLIENTS_PART = 4


@dataclass(frozen=True, slots=True)
class Placement:
    """Disjoint sets of cores in rising order; both empty where everybody shares all of them."""

    client: tuple[int, ...] = ()
    engine: tuple[int, ...] = ()


def placement(cores: Iterable[int]) -> Placement:
    """The last quarter of ``cores`` for the client, ``MOST_CLIENT_CORES`` at most; nothing is split below four.

    The last ones, because interrupts and whoever counts from 0 are on the first.
    """
    ours = sorted(cores)
    if len(ours) < FEWEST_CORES:
        return Placement()
    count = min(len(ours) // _CLIENTS_PART, MOST_CLIENT_CORES)
    return Placement(client=tuple(ours[-count:]), engine=tuple(ours[:-count]))
