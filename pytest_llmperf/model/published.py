"""A published number: a constant from a document, to be shown beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A constant from a document.

    Attributes:
        metric: the metric of ours that it is compared with.
        source: where it was published.
        conditions: what the document says of hardware, versions and load; ``unknown`` where it does not say.
        definition: the document's definition of the metric; ``unknown`` where it does not say.
        expires: the day from which it is too old to be shown as current.
    """

    metric: str
    value: float
    source: str
    conditions: str = "unknown"
    definition: str = "unknown"
    expires: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What was measured beside what was published: shown, never judged.

    It is no verdict and has no word, so that nothing which turns words into exit codes can take it. A published number
    is often the best of several, of another machine, and its noise is unknown.

    Attributes:
        change: measured against published, a share for ratio metrics, in the unit for absolute ones.
        interval: 90 % interval of ``change`` for the noise of our own runs alone, the class prior assumed.
        expired: whether the published number is out of date.
    """

    published: Published
    measured: float
    change: float
    interval: tuple[float, float]
    runs: int
    expired: bool
