"""A calibration: the noise of one build measured against itself, and what can be seen through it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any

MARGINS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.10, 0.15, 0.20)
"""What a suggested margin is one of: shares for ratio metrics, in the unit for absolute ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The noise of one metric. Sizes are shares for ratio metrics, in the unit for absolute ones.

    Attributes:
        metric: name.
        cv: standard deviation of one run, sessions included.
        cv_limit: its upper 95 % confidence limit, which serves as prior of the gate from ten sessions on.
        session_share: rho, the session's share of that variance; None where no session has two runs, or there is one.
        session_share_interval: its 90 % interval, None where it has none.
        autocorrelation: of successive session means, lag 1; None for fewer than four sessions. Above .3 a baseline of
            so many sessions is worth fewer.
        visible: (runs, smallest loss visible) with these sessions as baseline, for each look.
        margin: the suggested one; None where even the largest on the list could not be seen.
        false_alarms: of ``Calibration.replays``, how many found the metric REGRESSED.
    """

    metric: str
    cv: float
    cv_limit: float
    session_share: float | None
    session_share_interval: tuple[float, float] | None
    autocorrelation: float | None
    visible: tuple[tuple[int, float], ...]
    margin: float | None
    false_alarms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What runs of one build say of the noise.

    Attributes:
        sessions: server starts.
        runs: of all sessions.
        noise: by metric, in the order of the gates.
        correlations: of the metrics' values as measured, over all runs, in the same order; None where one is constant.
            () where they are not kept.
        replays: how often a session was judged with all others as its baseline: once each.
        red_replays: of these, how many had any REGRESSED metric.
        on: the day it was made, None where nobody said.
        commit: the one it was made at, ``unknown`` outside a repository.
    """

    sessions: int
    runs: int
    noise: tuple[Noise, ...]
    correlations: tuple[tuple[float | None, ...], ...] = ()
    replays: int
    red_replays: int
    on: date | None = None
    commit: str = "unknown"

    def of(self, metric: str) -> Noise | None:
        """The noise of one metric; None where it was not calibrated."""
        return next((each for each in self.noise if each.metric == metric), None)

    def only(self, metrics: Container[str]) -> Calibration | None:
        """The noise of some metrics, without correlations; None where none of them was calibrated.

        ``red_replays`` still speaks of all that were calibrated together.
        """
        noise = tuple(each for each in self.noise if each.metric in metrics)
        return replace(self, noise=noise, correlations=()) if noise else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON and YAML values; ``from_dict`` is the inverse."""
        return {**asdict(self), "on": None if self.on is None else self.on.isoformat()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Calibration:
        """The calibration that ``to_dict`` wrote, read back from JSON or YAML."""
        noise = tuple(
            Noise(**{**each, "session_share_interval": _pair(each["session_share_interval"]),
                     "visible": tuple((runs, loss) for runs, loss in each["visible"])})
            for each in plain["noise"]
        )  # fmt: skip
        return cls(**{**plain, "noise": noise, "correlations": tuple(tuple(row) for row in plain["correlations"]),
                      "on": None if plain["on"] is None else date.fromisoformat(plain["on"])})  # fmt: skip


def _pair(values: Any) -> tuple[float, float] | None:
    return None if values is None else (values[0], values[1])
