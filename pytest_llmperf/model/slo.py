"""An SLO: the latencies that a request must keep to count as good."""

from __future__ import annotations

from dataclasses import asdict, dataclass

GOODPUT = ("request_goodput", "slo_attainment")
"""The metrics that an SLO defines: without one there are none, and those of different ones are not comparable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """Limits in seconds; None where a latency does not matter. At least one is set."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2el_s: float | None = None

    def __str__(self) -> str:
        limits = {name.removesuffix("_s"): limit for name, limit in asdict(self).items() if limit is not None}
        return ", ".join(f"{name} {limit * 1e3:g} ms" for name, limit in limits.items())
