"""How the client's ceiling is looked for, and what a step means; the load itself is scripted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from pytest_llmperf.clock import FakeClock
from pytest_llmperf.load.capture import Capture
from pytest_llmperf.model.ceiling import Ceiling, Limit, Pace, Step
from pytest_llmperf.model.run import ClientFacts
from pytest_llmperf.pipeline import self_test
from pytest_llmperf.pipeline.self_test import BOUND_S, STREAMS, judge
from tests.unit.pipeline import saved_example

CLIENT = ClientFacts(
    workers=1, lag_mean_ms=0.1, lag_p50_ms=0.1, lag_p99_ms=0.5, lag_max_ms=1, cpu_share=0.5, schedule_lag_p99_ms=None,
    max_in_flight=9,
)  # fmt: skip
KEPT = Pace(chunks=100, ticks=75, missed=0, blocked=0, late_p99_ms=1, cpu_share=0.3, gap_p50_ms=20, gap_p99_ms=21)


def step(workers: int, streams: int, limit: Limit = "", *, tails: bool = True) -> Step:
    return Step(
        workers=workers, streams=streams, chunks_per_s=50.0 * streams, cpu_us_per_chunk=17, client=CLIENT, sent=KEPT,
        itl_ms=(20.0, 21.5), tails=tails and not limit, limit=limit, why=limit,
    )  # fmt: skip


@dataclass
class Machine:
    """Carries ``most`` streams a worker; every step takes ``takes_s``."""

    most: int
    takes_s: float = 0.5
    shared: float = 1.0
    hiccup_at: int = 0
    clock: FakeClock = field(default_factory=FakeClock)
    tried: list[tuple[int, int, int]] = field(default_factory=list)

    def carry(self, workers: int, streams: int, servers: int) -> Step:
        self.tried.append((workers, streams, servers))
        self.clock.sleep(self.takes_s)
        if streams == self.hiccup_at:
            self.hiccup_at = 0
            return step(workers, streams, "client")
        most = self.most * workers * (self.shared if workers > 1 else 1)
        return step(workers, streams, "client" if streams > most else "", tails=streams <= most / 8)

    def test(self, cores: int) -> list[Ceiling]:
        return self_test.self_test(cores, lambda _: None, self.clock, self.carry)


def test_more_and_more_streams_until_the_client_cannot() -> None:
    machine = Machine(most=600)
    [alone] = machine.test(cores=2)
    assert [streams for _, streams, _ in machine.tried] == [16, 64, 256, 512, 768, 768]
    assert (alone.best, alone.best_tails) == (step(1, 512, tails=False), step(1, 64))
    assert alone.failed == step(1, 768, "client")
    assert not alone.bounded


def test_a_hiccup_of_the_machine_is_not_its_ceiling() -> None:
    machine = Machine(most=600, hiccup_at=256)
    [alone] = machine.test(cores=2)
    assert alone.best is not None
    assert alone.best.streams == 512
    assert alone.failed is not None
    assert alone.failed.streams == 768


def test_a_load_that_could_be_tried_only_once_is_not_called_carried() -> None:
    machine = Machine(most=600, takes_s=3.0)
    [alone] = machine.test(cores=2)
    assert [streams for _, streams, _ in machine.tried] == [16, 64, 256, 512, 768]
    assert not alone.bounded


def test_a_machine_that_carries_nothing_has_no_ceiling() -> None:
    [alone] = Machine(most=0).test(cores=16)
    assert alone.best is None
    assert alone.failed == step(1, STREAMS[0], "client")


def test_all_workers_are_asked_for_the_sum_and_then_for_less() -> None:
    machine = Machine(most=512, shared=0.8, takes_s=0.1)
    alone, together = machine.test(cores=8)
    assert (alone.workers, together.workers) == (1, 4)
    assert machine.tried[-2:] == [(4, 2048, 4), (4, 1536, 4)]
    assert together.best is not None
    assert together.best.streams == 1536


def test_a_large_machine_is_not_asked_for_more_streams_than_it_has_ports() -> None:
    machine = Machine(most=2048, takes_s=0.1)
    _, together = machine.test(cores=128)
    assert machine.tried[-1] == (8, 8192, 8)
    assert together.bounded


@pytest.mark.parametrize("takes_s", [0.1, 1.0, 2.9, 4.0, 30.0])
@pytest.mark.parametrize("cores", [2, 16])
def test_the_time_is_bounded_and_a_step_that_might_not_end_in_it_is_left_out(takes_s: float, cores: int) -> None:
    machine = Machine(most=10_000, takes_s=takes_s)
    ceilings = machine.test(cores)
    assert machine.clock.now_ns / 1e9 <= max(BOUND_S, takes_s)
    assert machine.tried
    assert all(ceiling.bounded for ceiling in ceilings if ceiling.steps)


def test_of_the_most_that_is_tried_it_is_said_that_there_may_be_more() -> None:
    [alone] = Machine(most=10_000, takes_s=0.1).test(cores=2)
    assert alone.best is not None
    assert alone.best.streams == STREAMS[-1]
    assert alone.bounded


MEANS = {"mean_tpot_ms": "client_lag: late"}
TAILS = {"p99_itl_ms": "client_lag: late"}


@pytest.mark.parametrize(
    ("sent", "invalid", "failed", "limit", "why"),
    [
        (KEPT, {}, "", "", ""),
        (KEPT, TAILS, "", "", ""),
        (KEPT, MEANS, "", "client", "client_lag: late"),
        (replace(KEPT, missed=10), {}, "", "server", "server-bound: 10 of 85 ticks"),
        (replace(KEPT, missed=10), MEANS, "", "server", "server-bound: 10 of 85 ticks"),
        (replace(KEPT, missed=3), MEANS, "", "client", "client_lag: late"),
        (replace(KEPT, chunks=0, ticks=0), {}, "", "server", "server-bound"),
        (replace(KEPT, missed=10), MEANS, "9 of 64 requests failed: x", "requests", "9 of 64"),
    ],
)
def test_what_was_the_limit(sent: Pace, invalid: dict[str, str], failed: str, limit: str, why: str) -> None:
    found = judge(sent, invalid, failed)
    assert found[0] == limit
    assert found[1].startswith(why)


def test_a_server_that_was_late_with_time_to_spare_was_kept_from_running() -> None:
    late = replace(KEPT, missed=10, cpu_share=0.3)
    assert judge(late, {}, "")[1].endswith("at 30% of a core: something else had the CPU")
    assert judge(replace(late, cpu_share=0.95), {}, "")[1].endswith("at 95% of a core")


def test_several_servers_are_as_good_as_the_worst() -> None:
    both = Pace.of([KEPT, replace(KEPT, missed=20, late_p99_ms=30, cpu_share=1.0)])
    assert (both.chunks, both.late_p99_ms, both.cpu_share, both.kept) == (200, 30, 1.0, False)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_step_is_driven_and_judged_as_a_run_is(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_test, "TOKENS", 10)
    carried = self_test.carry(workers, 4, workers)
    assert carried.sent.chunks == 40
    assert carried.client.workers == workers
    assert carried.limit != "requests", carried.why
    assert carried.itl_ms is not None
    assert carried.client.max_in_flight == 4


def test_a_step_with_failed_requests_says_why_the_first_of_them_failed() -> None:
    client = replace(CLIENT, cpu_share=1.0)
    capture = Capture(records=saved_example.columns(), client=client, window_ns=(0, 2 * 10**9), end="failed")
    failed = self_test.step_of(1, capture, KEPT)
    assert (failed.limit, failed.why) == ("requests", "2 of 4 requests failed: HTTP 500: out of memory")
    assert (failed.streams, failed.chunks_per_s, failed.cpu_us_per_chunk) == (4, 3.0, 2e6 / 6)


def test_a_client_without_cpu_left_is_invalid_by_its_cpu() -> None:
    records = replace(saved_example.columns(), outcome=np.zeros(4, dtype=np.int64))
    capture = Capture(records=records, client=replace(CLIENT, cpu_share=0.97), window_ns=(0, 10**9), end="complete")
    step = self_test.step_of(1, capture, KEPT)
    assert (step.limit, step.tails) == ("client", False)
    assert step.why.startswith("client_cpu: busiest of 1 worker(s): 97% of a core")


def test_every_gate_is_of_a_metric_that_lag_can_move() -> None:
    is_named: Callable[[str], bool] = lambda name: name in self_test.MEANS + self_test.TAILS  # noqa: E731
    assert all(gate.metric.timing and is_named(gate.metric.name) for gate in self_test.GATES)
