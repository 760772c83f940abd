from __future__ import annotations

from pytest_llmperf.load.facts import client_facts, coalesced_share, schedule_lag_p99_ms
from pytest_llmperf.load.records_file import records_of
from pytest_llmperf.load.row import Row
from pytest_llmperf.load.rows_file import WorkerReport
from pytest_llmperf.model.records import Outcome, Records
from pytest_llmperf.model.suite import Load

RATE = Load(kind="request_rate", value=1.0)


def records(spans: list[tuple[int, int]], scheduled: int = -1) -> Records:
    return records_of(
        Row(index=i, planned_input_tokens=-1, asked_tokens=1, sent_ns=sent, done_ns=done, scheduled_ns=scheduled)
        for i, (sent, done) in enumerate(spans)
    )


def test_schedule_lag() -> None:
    assert schedule_lag_p99_ms(records([(3_000_000, 9_000_000)], scheduled=1_000_000)) == 2.0
    assert schedule_lag_p99_ms(records([(3, 9)])) is None
    assert schedule_lag_p99_ms(records([(-1, 9)], scheduled=5)) is None


def test_chunks_of_one_read_are_coalesced() -> None:
    def streams(*stamps: tuple[int, ...], outcome: Outcome = Outcome.OK) -> Records:
        return records_of(
            Row(index=i, planned_input_tokens=-1, asked_tokens=1, outcome=outcome, chunk_ns=each)
            for i, each in enumerate(stamps)
        )

    assert coalesced_share(streams((1, 1, 2, 3, 3), (3, 4, 5))) == 2 / 6
    assert coalesced_share(streams((1, 2, 3), (3, 4, 5))) == 0
    assert coalesced_share(streams((1,), (1,))) is None
    assert coalesced_share(streams((1, 1), outcome=Outcome.FAILED)) is None


def test_lags_are_pooled_and_the_busiest_worker_counts() -> None:
    reports = [
        WorkerReport(rows=(), lags_ns=(1_000_000,) * 50, cpu_share=0.2),
        WorkerReport(rows=(), lags_ns=(3_000_000,) * 50, cpu_share=0.7),
    ]
    facts = client_facts(reports, records([(1, 2)], scheduled=0), RATE)
    assert (facts.workers, facts.lag_mean_ms, facts.lag_p50_ms, facts.lag_max_ms) == (2, 2.0, 2.0, 3.0)
    assert facts.cpu_share == 0.7
    assert facts.schedule_lag_p99_ms is not None
    assert client_facts(reports, records([(1, 2)], scheduled=0), Load(kind="burst")).schedule_lag_p99_ms is None
    for load in (Load(kind="ramp"), Load(kind="trace")):
        assert client_facts(reports, records([(1, 2)], scheduled=0), load).schedule_lag_p99_ms is not None
