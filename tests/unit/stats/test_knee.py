from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.stats.knee import knee

POSITIVE = st.floats(1e-3, 1e6)


def saturating(loads: list[int], capacity: float, alone_ms: float) -> dict[str, tuple[float, float]]:
    """A closed loop on a server that does ``capacity`` requests at once: latency is flat, then throughput is."""
    latency = {n: alone_ms * max(1.0, n / capacity) for n in loads}
    return {f"concurrency-{n}": (n / latency[n], latency[n]) for n in loads}


@pytest.mark.parametrize("capacity", [1, 4, 32, 256])
def test_the_knee_of_a_server_that_saturates_is_its_capacity(capacity: int) -> None:
    points = saturating([1, 2, 4, 8, 16, 32, 64, 128, 256], capacity, 50.0)
    assert knee(points) == f"concurrency-{capacity}"


def test_two_points_have_no_knee() -> None:
    assert knee(saturating([1, 2], 1, 5.0)) is None


@given(st.dictionaries(st.text(max_size=3), st.tuples(POSITIVE, POSITIVE), min_size=3), st.floats(0.1, 10))
def test_units_do_not_move_the_knee_and_no_load_beats_it_in_both(
    points: dict[str, tuple[float, float]], factor: float
) -> None:
    found = knee(points)
    assert found is not None
    best = points[found]
    assert not any(throughput > best[0] and latency < best[1] for throughput, latency in points.values())
    power = best[0] / best[1]
    scaled = knee({name: (throughput * factor, latency) for name, (throughput, latency) in points.items()})
    assert scaled is not None
    assert points[scaled][0] / points[scaled][1] == pytest.approx(power)
