"""A concern: what an audit found of a gate or of a file that its baselines are kept in, and what to do about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What can be wrong; an engineer names it to ``--fail``."""

    BROKEN = "broken"
    """A file that cannot be read, or cannot be true: zeros, placeholders, a mistake, an acceptance on a day to come."""
    MISSING = "missing"
    """A gate without a baseline."""
    REFUSED = "refused"
    """A baseline of another workload or of other weights: tonight it is NO BASELINE."""
    STALE = "stale"
    """A baseline that was accepted long ago."""
    QUARANTINE = "quarantine"
    """A quarantine that has expired, names nothing, or ends too far from today."""
    UNDERPOWERED = "underpowered"
    """A gate that cannot see a loss of its margin, whatever the runs."""
    UNGATED = "ungated"
    """``margin: auto`` without a calibration that has a margin: nothing is judged."""
    IMPROVED = "improved"
    """Better than the baseline for many nights, and nobody accepted it: the next loss of that size passes unseen."""
    UNCALIBRATED = "uncalibrated"
    """A gate whose noise nobody has measured: the class prior is all that is known."""
    PUBLISHED = "published"
    """A published number that has expired."""
    ORPHAN = "orphan"
    """A file that no case has."""


ADVICE = frozenset({Kind.UNCALIBRATED, Kind.PUBLISHED, Kind.ORPHAN})
"""The kinds that no verdict is wrong by; they fail an audit only where they are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """One finding of an audit.

    Attributes:
        place: the file that it is about; of a suite with its line.
        case: id, "" where it is about none.
        metrics: of the case; () for all of it.
        what: is wrong.
        remedy: what to do.
    """

    kind: Kind
    place: str
    case: str = ""
    metrics: tuple[str, ...] = ()
    what: str
    remedy: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "kind": str(self.kind), "metrics": list(self.metrics)}
