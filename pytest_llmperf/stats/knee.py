"""The knee of a sweep: the load beyond which waiting grows faster than work gets done."""

from __future__ import annotations

from collections.abc import Mapping


def knee(points: Mapping[str, tuple[float, float]]) -> str | None:
    """The name of the load with the most throughput per latency; None where fewer than three were measured.

    Kleinrock's power, throughput / latency (Proc. ICC 1979, 43.1.1): below the knee throughput grows faster than
    latency, above it latency grows faster than throughput. It needs no parameter and no order of the loads. At equal
    power the one with less latency is taken.

    Args:
        points: by load, its throughput and its latency, both positive.
    """
    if len(points) < 3:  # noqa: PLR2004 (of two points, either could be the knee)
        return None
    return max(points, key=lambda name: (points[name][0] / points[name][1], -points[name][1]))
