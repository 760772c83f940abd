"""A published number: a constant from a document, to be shown beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any


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

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; ``from_dict`` is the inverse."""
        plain = asdict(self)
        plain["published"]["expires"] = self.published.expires.isoformat()
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Beside:
        """What ``to_dict`` wrote."""
        published = {**plain["published"], "expires": date.fromisoformat(plain["published"]["expires"])}
        low, high = plain["interval"]
        return cls(**{**plain, "published": Published(**published), "interval": (low, high)})
