from __future__ import annotations

import asyncio
import time
from itertools import pairwise

import pytest

from pytest_llmperf.load.lag_probe import PERIOD_NS, LagProbe


@pytest.mark.parametrize("step_ms", [4, 5, 8, 10, 12.5, 16, 20, 25, 40, 50])
def test_within_two_seconds_the_probe_meets_a_steady_engine_at_every_point_of_its_step(step_ms: float) -> None:
    step_ns = round(step_ms * 1e6)
    met = sorted({i * PERIOD_NS % step_ns for i in range(2_000_000_000 // PERIOD_NS)})
    widest = max(later - earlier for earlier, later in pairwise([*met, met[0] + step_ns]))
    assert widest <= step_ns / 10


def test_a_stall_counts_once_for_each_time_that_was_due_in_it() -> None:
    async def stalled() -> list[int]:
        probe = LagProbe(asyncio.get_running_loop())
        probe.start()
        await asyncio.sleep(0.03)
        before = len(probe.lags_ns)
        time.sleep(0.1)  # noqa: ASYNC251 (the stall)
        await asyncio.sleep(0.001)
        probe.stop()
        return list(probe.lags_ns)[before:]

    lags = asyncio.run(stalled())
    due_in_it = 100_000_000 // PERIOD_NS
    assert len(lags) >= due_in_it
    assert max(lags) >= 100_000_000 - 2 * PERIOD_NS
    longest = lags.index(max(lags))
    assert [earlier - later for earlier, later in pairwise(lags[longest : longest + due_in_it])] == [PERIOD_NS] * (
        due_in_it - 1
    )
